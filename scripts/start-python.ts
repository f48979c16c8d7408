/** The examples in Python, which `npm start -- --examples all` serves beside the platform. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { EnvironmentUnavailable, environment, type PythonVersions } from "./start-environment.ts";

export interface PythonExample {
  readonly name: string;
  readonly does: string;
  readonly versions: PythonVersions;
  /** What is installed for it, as pip and the disk count it. */
  readonly packages: number;
  readonly megabytes: number;
  /** Its port, counted from that of the platform. */
  readonly portOffset: number;
  /** Called with the sample, from the root of the repository. */
  readonly call: string;
}

export const PYTHON_EXAMPLES: readonly PythonExample[] = [
  {
    name: "ocr",
    does: "reads the text on scanned pages",
    versions: { oldest: 10, newest: 12 },
    packages: 15,
    megabytes: 360,
    portOffset: 10,
    call: "/read -F image=@examples/ocr/samples/invoice.png",
  },
  {
    name: "filetype",
    does: "tells the types of files by their content",
    versions: { oldest: 10, newest: 13 },
    packages: 9,
    megabytes: 200,
    portOffset: 11,
    call: "/identify -F file=@examples/filetype/samples/forecast",
  },
];

/** One that was asked for: with its interpreter or address, or why it was left out. */
export type Outcome<T> =
  | ({ readonly example: PythonExample } & T)
  | { readonly example: PythonExample; readonly leftOut: string };

export interface SetUpOptions {
  /** The data folder of the platform. */
  readonly data: string;
  readonly signal: AbortSignal;
}

/** Makes their environments, one after the other, and tells its progress on standard error. */
export async function setUpPython({ data, signal }: SetUpOptions) {
  const outcomes: Outcome<{ readonly python: string }>[] = [];
  for (const example of PYTHON_EXAMPLES) {
    const folder = join(data, "examples", example.name);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    try {
      const python = await environment({
        requirements: `examples/${example.name}/requirements.txt`,
        versions: example.versions,
        folder: join(folder, "venv"),
        onProgress: (text) => process.stderr.write(`  ${example.name}: ${text}\n`),
        signal,
        env: process.env,
      });
      outcomes.push({ example, python });
    } catch (err) {
      if (!(err instanceof EnvironmentUnavailable)) {
        throw err;
      }
      outcomes.push(leaveOut(example, err.message));
    }
  }
  return outcomes;
}

export interface ServedExample {
  readonly url: string;
  /** Stops it, and waits for its end. */
  readonly stop: () => Promise<void>;
}

/** Serves an example beside the platform at this URL; resolves when it answers, or has ended. */
export async function serveExample(
  { example, python }: { readonly example: PythonExample; readonly python: string },
  { data, platform }: { readonly data: string; readonly platform: string },
): Promise<Outcome<ServedExample>> {
  const port = Number(new URL(platform).port) + example.portOffset;
  const service = `examples/${example.name}/service.py`;
  const database = join(data, "examples", example.name, "tasks.db");
  const args = [service, "--python", python, "--port", String(port), "--workers", "1"];
  process.stderr.write(`$ tessera serve ${[...args, "--database", database].join(" ")}\n`);
  const entry = fileURLToPath(new URL("start-serve.ts", import.meta.url));
  const child = spawn(
    process.execPath,
    [...process.execArgv, entry, ...args, "--database", database],
    // It ends with the channel, so that it never outlives this process.
    { stdio: ["ignore", "pipe", "pipe", "ipc"] },
  );
  let said = "";
  createInterface({ input: child.stderr as Readable }).on("line", (line) => {
    process.stderr.write(`  ${example.name}: ${line}\n`);
    said = line.trim() === "" ? said : line.trim();
  });
  const greeted = Promise.withResolvers<string>();
  createInterface({ input: child.stdout as Readable }).on("line", (line) => {
    const [, url] = / on (http:\S+)$/.exec(line) ?? [];
    if (url !== undefined) {
      greeted.resolve(url);
    }
  });
  const closed = once(child, "close");
  const url = await Promise.race([greeted.promise, closed.then(() => undefined)]);
  if (url === undefined) {
    return leaveOut(example, said);
  }
  const stop = async (): Promise<void> => {
    if (child.connected) {
      child.disconnect();
    }
    await closed;
  };
  return { example, url, stop };
}

/** Says at once that an example is left out, and why. */
function leaveOut(example: PythonExample, leftOut: string) {
  process.stderr.write(`  ${example.name} is left out: ${leftOut}\n`);
  return { example, leftOut };
}
