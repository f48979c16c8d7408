/**
 * Counts the files of `src/` that one warm submit over HTTP enters, by V8's
 * precise coverage: `node scripts/call-path/call-path.ts`, with `--files` their names,
 * and with `--functions` those of the functions, too. What enters more files
 * than `--max` allows ends with exit code 1.
 *
 * The service runs as `tessera serve` runs it, with its database in memory.
 * The count has what the serving thread enters from the request until its
 * answer has arrived: the storage thread and the worker are not in it, nor is
 * the end of the task.
 */
import { once } from "node:events";
import { request } from "node:http";
import { Session } from "node:inspector/promises";
import { relative } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { serveService } from "../../src/app/serve.ts";
import { readServeConfig } from "../../src/config/serve.ts";
import { readArguments } from "../usage.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const SERVICE = fileURLToPath(new URL("service.ts", import.meta.url));
const WARM_CALLS = 50;

/** After this, the tasks of the warm calls have ended. */
const SETTLE_MS = 1_500;

/** Submits a task and resolves when its answer has been read. */
async function submit(port: number): Promise<void> {
  const body = JSON.stringify({ text: "One. Two. Three." });
  const req = request({
    port,
    method: "POST",
    path: "/wait/submit",
    headers: { "content-type": "application/json" },
  });
  req.end(body);
  const [res] = await once(req, "response");
  res.resume();
  await once(res, "end");
  if (res.statusCode !== 202) {
    throw new Error(`the submit was answered ${res.statusCode}`);
  }
}

/** The names of the functions that one more submit enters, by file. */
async function enteredBy(port: number): Promise<Map<string, string[]>> {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await session.post("Profiler.takePreciseCoverage");
  await submit(port);
  const { result } = await session.post("Profiler.takePreciseCoverage");
  session.disconnect();
  const entered = result.flatMap(({ url, functions }) => {
    const called = functions.filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0);
    const path = url.startsWith("file:") ? relative(ROOT, fileURLToPath(url)) : "";
    const names = called.map(({ functionName }) => functionName || "(anonymous)");
    return path.startsWith("src/") && called.length > 0 ? [[path, names] as const] : [];
  });
  return new Map(entered.sort(([a], [b]) => (a < b ? -1 : 1)));
}

const { values } = readArguments({
  options: {
    files: { type: "boolean", default: false },
    functions: { type: "boolean", default: false },
    max: { type: "string" },
  },
});
const { config, secrets } = readServeConfig(SERVICE, { port: "0" }, process.env);
const service = await serveService({ ...config, logLevel: "silent" }, secrets);
try {
  for (let call = 0; call < WARM_CALLS; call += 1) {
    await submit(service.port);
  }
  await setTimeout(SETTLE_MS);
  const entered = await enteredBy(service.port);
  for (const [path, names] of entered) {
    if (values.files || values.functions) {
      process.stdout.write(`${path}${values.functions ? `  ${names.join(" ")}` : ""}\n`);
    }
  }
  const functions = [...entered.values()].reduce((sum, names) => sum + names.length, 0);
  process.stdout.write(`a warm submit enters ${entered.size} files, ${functions} functions\n`);
  process.exitCode = entered.size > Number(values.max ?? entered.size) ? 1 : 0;
} finally {
  await service.stop();
}
