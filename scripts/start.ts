/**
 * `npm start`: runs the platform with the organization acme and the examples in
 * TypeScript deployed. Every step is a command of the command line, which it
 * prints. A second start keeps all data, and deploys an example again only when
 * its artifact has changed. With `--examples all`, those in Python are served
 * beside the platform, as far as the machine can run them.
 *
 *   npm start -- --port 8080 --data ./other-folder --examples all
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ExitCode } from "../src/cli/failure.ts";
import { processStreams } from "../src/cli/terminal.ts";
import { main } from "../src/main.ts";
import { greeting } from "./start-greeting.ts";
import {
  type Outcome as ExampleOutcome,
  type ServedExample,
  serveExample,
  setUpPython,
} from "./start-python.ts";

const EMAIL = "you@acme.example";
const EXAMPLES = [
  { name: "summarizer", flags: [] },
  { name: "digits", flags: ["--authorization"] },
];

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "3000" },
    data: { type: "string", default: "./.tessera" },
    examples: { type: "string", default: "typescript" },
  },
});
const { port, data, examples } = values;
const streams = processStreams();

/** The file with the token that deploys the examples; empty from before the setup until its end. */
const deployerFile = join(data, "npm-start.token");
/** The file with the token that calls the digits, and nothing else. */
const callerFile = join(data, "digits.token");

interface Outcome {
  readonly code: number;
  readonly stdout: string;
}

interface CommandOptions {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Hides error output. */
  readonly quiet?: boolean;
}

/** Runs a command in this process. */
async function tessera(args: readonly string[], options: CommandOptions = {}): Promise<Outcome> {
  const { input = "", env = {}, quiet = false } = options;
  let stdout = "";
  const code = await main(args, {
    env: { ...process.env, ...env },
    streams: {
      ...streams,
      stdin: new PassThrough().end(input),
      stdout: writable((text) => {
        stdout += text;
      }),
      stderr: writable((text) => void (quiet || process.stderr.write(`  ${text}`))),
      interactive: false,
    },
  });
  return { code, stdout: stdout.trim() };
}

/** Shows a command, and runs it. Ends the program when it fails. */
async function show(args: readonly string[], options?: CommandOptions): Promise<string> {
  process.stderr.write(`$ tessera ${args.join(" ")}\n`);
  const { code, stdout } = await tessera(args, options);
  if (code !== 0) {
    throw new Failed(code);
  }
  return stdout;
}

/** A failure that has already been reported. */
class Failed extends Error {
  readonly code: number;

  constructor(code: number) {
    super();
    this.code = code;
  }
}

function writable(onText: (text: string) => void): Writable {
  return new Writable({
    write: (chunk, _encoding, done) => {
      onText(String(chunk));
      done();
    },
  });
}

function readToken(): string | undefined {
  try {
    return readFileSync(deployerFile, "utf8").trim();
  } catch {
    return undefined;
  }
}

function keepToken(file: string, token: string): void {
  mkdirSync(data, { recursive: true, mode: 0o700 });
  writeFileSync(file, token, { mode: 0o600 });
}

/** Creates the organization and its admin; returns the password, which cannot be shown again. */
async function setUp(): Promise<string> {
  const place = ["--data", data];
  if (readToken() === undefined) {
    const { stdout } = await tessera(["admin", "organizations", "-o", "json", ...place], {
      quiet: true,
    });
    if (stdout !== "" && stdout !== "[]") {
      process.stderr.write(
        `${data} contains a platform that npm start has not set up.\nRun it with npx tessera start, or use another folder: npm start -- --data ./.tessera-examples\n`,
      );
      throw new Failed(1);
    }
    keepToken(deployerFile, "");
  }
  const person = ["--email", EMAIL];
  const first = ["admin", "setup", "--organization", "acme", ...person, ...place];
  process.stderr.write(`$ tessera ${first.join(" ")}\n`);
  const { code, stdout } = await tessera(first, { quiet: true });
  // Already set up, but without a stored token: an earlier start was interrupted.
  return code === 0 ? stdout : await show(["admin", "reset-password", ...person, ...place]);
}

/** Runs the platform; resolves with its address and a promise of its exit code. */
async function startPlatform(): Promise<{ readonly url: string; readonly ended: Promise<number> }> {
  const greeted = Promise.withResolvers<string>();
  const stdout = writable((text) => {
    const [, url] = / runs on (\S+)\n/.exec(text) ?? [];
    if (url !== undefined) {
      greeted.resolve(url);
    }
  });
  const args = ["start", "--port", port, "--data", data];
  process.stderr.write(`$ tessera ${args.join(" ")}\n`);
  const ended = main(args, { streams: { ...streams, stdout } });
  const url = await Promise.race([greeted.promise, ended]);
  if (typeof url === "number") {
    throw new Failed(url);
  }
  return { url, ended };
}

/** The level at which workers are held. */
async function sandboxOf(url: string): Promise<string> {
  const answer = await fetch(`${url}/readyz?verbose`);
  return ((await answer.json()) as { readonly sandbox: string }).sandbox;
}

/** Creates a token, by the login of these variables or by the password; returns its value. */
async function createToken(
  [name, ...access]: readonly [name: string, ...access: string[]],
  { url, password, env = {} }: Login,
): Promise<string> {
  const person = ["--endpoint", url, "--email", EMAIL, "--password-stdin"];
  const args = ["token", "create", name, ...access, ...(password === undefined ? [] : person)];
  const stdout = await show([...args, "-o", "json"], {
    env,
    input: password === undefined ? "" : `${password}\n`,
  });
  return (JSON.parse(stdout) as { value: string }).value;
}

interface Login {
  readonly url: string;
  readonly password: string | undefined;
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Deploys an example, unless its newest revision has the same digest. Resolves with whether the
 * token was accepted: it may have expired, and then the examples run on as they are.
 */
async function deploy(
  name: string,
  flags: readonly string[],
  env: Record<string, string>,
): Promise<boolean> {
  const artifact = join(data, "examples", `${name}.tessera`);
  mkdirSync(join(data, "examples"), { recursive: true });
  const build = ["build", `examples/${name}/service.ts`, "--output", artifact, "--json"];
  const built = JSON.parse(await show(build)) as { digest: string };
  const { code, stdout } = await tessera(
    ["deployment", "revisions", name, "--limit", "1", "-o", "json"],
    { env, quiet: true },
  );
  if (code === ExitCode.unauthenticated) {
    return false;
  }
  const { revisions } = (code === 0 ? JSON.parse(stdout) : { revisions: [] }) as {
    revisions: { digest: string }[];
  };
  if (revisions[0]?.digest !== built.digest) {
    await show(["deploy", artifact, "--name", name, ...flags], { env });
  }
  return true;
}

/** Deploys the examples, and makes the token that calls one. Resolves with whether it could. */
async function deployExamples(url: string, password: string | undefined): Promise<boolean> {
  const token =
    password === undefined
      ? (readToken() ?? "")
      : await createToken(["npm-start", "--developer-operations"], { url, password });
  const env = { SERVICE_CLOUD_API_KEY: token, SERVICE_CLOUD_API_ENDPOINT: url };
  for (const { name, flags } of EXAMPLES) {
    if (!(await deploy(name, flags, env))) {
      return false;
    }
  }
  if (password !== undefined || !existsSync(callerFile)) {
    const login = { url, password, env };
    keepToken(callerFile, await createToken(["digits", "--deployment", "digits"], login));
  }
  // Last: without it, the next start begins again.
  keepToken(deployerFile, token);
  return true;
}

/** The environments of the examples in Python, where they are asked for; a signal ends it and this process. */
async function environments() {
  if (examples !== "all") {
    return undefined;
  }
  const stopping = new AbortController();
  const stop = (): void => stopping.abort();
  process.once("SIGINT", stop).once("SIGTERM", stop);
  try {
    return await setUpPython({ data, signal: stopping.signal });
  } catch (err) {
    if (stopping.signal.aborted) {
      process.stderr.write("\nstopped while the examples were set up; the next start goes on\n");
      throw new Failed(1);
    }
    throw err;
  } finally {
    process.off("SIGINT", stop).off("SIGTERM", stop);
  }
}

async function run(): Promise<number> {
  if (!["typescript", "all"].includes(examples)) {
    process.stderr.write(`--examples takes typescript (the default) or all, not ${examples}\n`);
    throw new Failed(2);
  }
  const prepared = await environments();
  const password = readToken() ? undefined : await setUp();
  const { url, ended } = await startPlatform();
  const beside: ExampleOutcome<ServedExample>[] = [];
  let stopped = false;
  void ended.then(() => {
    stopped = true;
  });
  try {
    const isUpToDate = await deployExamples(url, password);
    for (const each of prepared ?? []) {
      if (!stopped) {
        beside.push("python" in each ? await serveExample(each, { data, platform: url }) : each);
      }
    }
    if (stopped) {
      throw new Failed(0);
    }
    const sandbox = await sandboxOf(url);
    const python = prepared && beside;
    const files = { callerFile, ...(!isUpToDate && { renewed: deployerFile }) };
    process.stdout.write(greeting({ url, data, sandbox, email: EMAIL, password, files, python }));
  } catch (err) {
    if (!(err instanceof Failed)) {
      throw err;
    }
    if (password !== undefined) {
      process.stdout.write(`Sign in to ${url} as ${EMAIL} with the password ${password}\n`);
    }
    process.stderr.write(
      `The platform runs on ${url}, but its setup is incomplete.\nThe next start makes up for it; Ctrl-C stops.\n`,
    );
  }
  const code = await ended;
  await Promise.all(beside.map((each) => ("stop" in each ? each.stop() : undefined)));
  return code;
}

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
try {
  process.exitCode = await run();
} catch (err) {
  if (!(err instanceof Failed)) {
    throw err;
  }
  process.exitCode = err.code;
}
