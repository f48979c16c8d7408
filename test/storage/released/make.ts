/**
 * Makes the fixture of a released schema: runs the program of that version on an empty database,
 * stores tasks, files, tokens and a deployment with it, and writes down the database, the keys,
 * the blobs, and what the program answered about them.
 *
 *   node test/storage/released/make.ts --program <checkout> [--command serve|start] [--postgres] --out <name>
 *
 * Without `--program`, it is this checkout. `--command serve` is for versions from before
 * `tessera start`. CONTRIBUTING.md says when a fixture is made.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startPostgres } from "../../postgres.ts";
import { dumpPostgres, dumpSqlite } from "./dump.ts";
import { filesBelow, type Stored, writeFixture } from "./fixture.ts";
import { SERVICE } from "./service.ts";

const THIS_CHECKOUT = fileURLToPath(new URL("../../../", import.meta.url));
const EMAIL = "ada@example.com";
const PASSWORD = "a long enough password";
/** Between two looks at a task. */
const POLL_INTERVAL_MS = 50;
const SECRET = "the secret of a deployment";

const { values } = parseArgs({
  options: {
    program: { type: "string", default: THIS_CHECKOUT },
    command: { type: "string", default: "start" },
    postgres: { type: "boolean", default: false },
    out: { type: "string" },
  },
});
const { command, out } = values;
if (out === undefined) {
  throw new Error("--out <name> names the fixture, such as sqlite-10");
}
const program = resolve(values.program);
const folder = mkdtempSync(join(tmpdir(), "tessera-released-"));
await using resources = new AsyncDisposableStack();
resources.defer(() => rmSync(folder, { recursive: true, force: true }));
const postgres = values.postgres ? resources.use(await startPostgres()) : undefined;
const data = join(folder, "data");
const database = postgres?.url ?? join(command === "serve" ? folder : data, "tessera.db");

const { name: sdk } = JSON.parse(readFileSync(join(program, "package.json"), "utf8")) as {
  readonly name: string;
};
symlinkSync(join(THIS_CHECKOUT, "node_modules"), join(folder, "node_modules"));
const service = join(folder, "service.ts");
writeFileSync(
  service,
  `import { file, service, task, withJsonSchema } from ${JSON.stringify(sdk)};\n${SERVICE}`,
);
const entry = join(folder, "entry.mjs");
const main = join(program, "src", "main.ts");
writeFileSync(
  entry,
  `import { main } from ${JSON.stringify(main)};\nprocess.exitCode = await main(process.argv.slice(2));\n`,
);

function run(args: readonly string[], { input = "", env = {} } = {}) {
  const child = spawn(process.execPath, [entry, ...args], {
    cwd: folder,
    stdio: ["pipe", "pipe", "pipe"],
    env: { PATH: process.env.PATH, XDG_CONFIG_HOME: folder, TESSERA_LOG_LEVEL: "warn", ...env },
  });
  child.stdin.end(input);
  let said = "";
  const heard = Promise.withResolvers<string>();
  const hear = (chunk: Buffer): void => {
    said += chunk.toString();
    const [, url] = / on (http:\/\/[^\s/]+)/.exec(said) ?? [];
    if (url !== undefined && said.includes("Ctrl-C")) {
      heard.resolve(url.replace("localhost", "127.0.0.1"));
    }
  };
  child.stdout.on("data", hear);
  child.stderr.on("data", hear);
  const ended = once(child, "close").then(([code]) => {
    heard.reject(new Error(`tessera ${args.join(" ")} ended:\n${said}`));
    if (code !== 0) {
      throw new Error(`tessera ${args.join(" ")} failed:\n${said}`);
    }
    return said;
  });
  heard.promise.catch(() => undefined);
  return { child, ended, url: heard.promise };
}

async function call(url: string, init: RequestInit & { readonly body?: string } = {}) {
  const headers = { ...(init.body && { "content-type": "application/json" }), ...init.headers };
  const res = await fetch(url, { ...init, ...(init.body && { method: "POST" }), headers });
  const bytes = Buffer.from(await res.arrayBuffer());
  return { status: res.status, headers: res.headers, bytes, text: bytes.toString() };
}

async function json(url: string, body: object | undefined, headers: Record<string, string>) {
  const answer = await call(url, { headers, ...(body && { body: JSON.stringify(body) }) });
  if (answer.status >= 300) {
    throw new Error(`${url}: ${answer.status} ${answer.text}`);
  }
  return { headers: answer.headers, json: JSON.parse(answer.text) };
}

/** Kinds of tasks that end before the node does. */
const ENDING = ["succeeded", "failed", "long", "file"];

/** Submits one task of each kind; answers what the program says of them in the end. */
async function storeTasks(
  url: string,
  headers: Record<string, string>,
  { delays }: { readonly delays: boolean },
): Promise<Stored["tasks"]> {
  const submit = async (path: string, text: string, more: Record<string, string> = {}) => {
    const submitted = await json(`${url}/${path}`, { text }, { ...headers, ...more });
    return String(submitted.json.task_id);
  };
  const status = async (endpoint: string, taskId: string): Promise<string> => {
    const told = await json(`${url}/${endpoint}/status?task_id=${taskId}`, undefined, headers);
    return told.json.status;
  };
  const ids: Record<string, string> = {
    succeeded: await submit("echo/submit", "hello", { "idempotency-key": "once" }),
    failed: await submit("echo/submit", "fail"),
    long: await submit("echo/submit", "0123456789".repeat(1_000)),
    file: await submit("pages/submit", "All work and no play. "),
  };
  const told: Record<string, Stored["tasks"][string]> = {};
  for (const kind of ENDING) {
    const taskId = ids[kind] ?? "";
    const endpoint = kind === "file" ? "pages" : "echo";
    const result = await call(`${url}/${endpoint}/get?task_id=${taskId}&wait=30`, { headers });
    told[kind] = {
      taskId,
      endpoint,
      status: await status(endpoint, taskId),
      ...(result.status === 200 && { result: result.bytes.toString("base64") }),
    };
  }
  // It takes the only worker, so that the next ones stay queued.
  ids.running = await submit("echo/submit", "hold");
  while (!/running|in_progress/i.test(await status("echo", ids.running))) {
    await sleep(POLL_INTERVAL_MS);
  }
  ids.queued = await submit("echo/submit", "later");
  ids.cancelled = await submit("echo/submit", "never");
  await json(`${url}/echo/cancel`, { task_id: ids.cancelled }, headers);
  if (delays) {
    ids.scheduled = await submit("echo/submit?delay=2000000", "much later");
  }
  for (const [kind, taskId] of Object.entries(ids)) {
    told[kind] ??= { taskId, endpoint: "echo", status: await status("echo", taskId) };
  }
  return told;
}

/** Ends a node as a crash does: a task still runs, and SQLite's log is not folded in. */
async function kill({ child, ended }: ReturnType<typeof run>): Promise<void> {
  child.kill("SIGKILL");
  await ended.catch(() => undefined);
}

/** A service that is served alone: tasks only. */
async function served(): Promise<Stored> {
  const node = run([
    ...["serve", service, "--port", "0", "--workers", "1", "--database", database],
  ]);
  const tasks = await storeTasks(await node.url, {}, { delays: false });
  await kill(node);
  return { tasks };
}

/** A platform with a person, tokens, a secret and a deployment. */
async function platform(): Promise<Stored> {
  const env = { TESSERA_DATA: data, ...(postgres && { DATABASE_URL: database }) };
  const setup = ["admin", "setup", "--organization", "acme", "--email", EMAIL];
  await run([...setup, "--password-stdin"], { input: PASSWORD, env }).ended;
  const node = run(["start", "--port", "0"], { env });
  const at = await node.url;
  const signedIn = await json(`${at}/api/v1/auth:signIn`, { email: EMAIL, password: PASSWORD }, {});
  const cookie = { cookie: signedIn.headers.getSetCookie()[0]?.split(";")[0] ?? "" };
  const token = async (name: string, fields: object) => {
    const body = { name, expires_at: new Date(Date.now() + 30 * 86_400_000).toISOString() };
    const made = await json(`${at}/api/v1/tokens`, { ...body, ...fields }, cookie);
    return { tokenId: made.json.token.token_id as string, value: made.json.value as string };
  };
  const all = ["developer_operations", "protected_endpoint"];
  const tokens = {
    personal: await token("laptop", { access: ["developer_operations"] }),
    organization: await token("build-server", {
      kind: "organization",
      access: all,
      all_deployments: true,
    }),
  };
  const login = {
    SERVICE_CLOUD_API_KEY: tokens.organization.value,
    SERVICE_CLOUD_API_ENDPOINT: at,
  };
  writeFileSync(join(folder, "secret"), SECRET);
  const settings = ["--authorization", "--workers", "1", "--secret", "SECRET=@secret"];
  await run(["deploy", service, ...settings], { env: login }).ended;
  const headers = {
    authorization: `Bearer ${tokens.organization.value}`,
    "tessera-deployment": "acme/fixture",
  };
  const tasks = await storeTasks(at, headers, { delays: true });
  await kill(node);
  const keys = readFileSync(join(data, "keys.json"), "utf8");
  const account = { email: EMAIL, password: PASSWORD };
  return { tasks, keys, tokens, account, secret: { name: "SECRET", value: SECRET } };
}

const stored = command === "serve" ? await served() : await platform();
writeFixture(out, {
  stored,
  madeAtMs: Date.now(),
  blobs: postgres || command === "serve" ? {} : filesBelow(join(data, "blobs")),
  database: postgres ? await dumpPostgres(postgres.url, "tessera") : dumpSqlite(database),
});
