/**
 * Tries an image as an operator would: `node packaging/image/smoke.ts ARCHIVE [--python]`.
 *
 * Needs podman and runc, and root. The container is read-only, without
 * capabilities, unprivileged, and keeps its data in a volume: set up, a token
 * (which signs in, and so needs argon2 and its libraries), deploy, call, task;
 * then the container is killed with SIGKILL and started again on its volume,
 * and has the result of the task, serves and takes tasks; SIGTERM ends it with 0.
 * With --python it is the image with Python: the deployment is a service in Python
 * with a lock, whose packages the node fetches, in the kernel's sandbox.
 */
import { strict as assert } from "node:assert";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { freePort } from "../../test/free-port.ts";
import { ROOT } from "../program.ts";
import { run } from "../run.ts";
import type { System } from "./context.ts";
import { confinement, indexOptions, Podman } from "./podman.ts";

const READY_MS = 60_000;
const ARGUMENTS = '{"texts": ["One. Two."]}';
const RESULT = ["One. Two."];

/** What the deployed summarizer makes of `CALL`: that of the examples, and that of trial/. */
const SUMMARIES = { small: "Two.", python: "One." };
const CALL = '{"text": "One. Two. Three.", "sentences": 1}';

/** One container at a time, on one volume. */
class Trial implements Disposable {
  readonly #podman = new Podman();
  readonly #system: System;
  readonly #url: string;
  readonly #port: number;
  #process: ChildProcess | undefined;
  #image = "";
  #password = "";
  #env: Record<string, string> = {};

  constructor(system: System, port: number) {
    this.#system = system;
    this.#port = port;
    this.#url = `http://localhost:${port}`;
  }

  load(archive: string): void {
    this.#image = this.#podman.load(archive);
    this.#podman.run(["volume", "create", "smoke"]);
  }

  async start(): Promise<void> {
    this.#process = spawn(
      "podman",
      [
        ...[...this.#podman.args, "run", "--rm", "--name", "smoke", "--network=host"],
        ...[...confinement(this.#system), "-e", `TESSERA_PORT=${this.#port}`],
        ...(this.#system === "python" ? ["-e", "TESSERA_SANDBOX=kernel", ...indexOptions()] : []),
        ...["-e", "TESSERA_HOST=localhost", "-e", "TESSERA_DRAIN_DELAY=0s"],
        ...["-v", "smoke:/data", this.#image],
      ],
      { stdio: ["ignore", "ignore", "inherit"] },
    );
    const begun = performance.now();
    while (!(await this.#isReady())) {
      assert(performance.now() - begun < READY_MS, "the container is not ready after 60 s");
      assert.equal(this.#process.exitCode, null, "the container has ended before it was ready");
      await sleep(100);
    }
  }

  async #isReady(): Promise<boolean> {
    return await fetch(`${this.#url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  }

  /** Sends a signal; resolves with the exit code of the container. */
  async end(signal: "KILL" | "TERM"): Promise<number> {
    assert(this.#process);
    const exited = once(this.#process, "exit");
    this.#podman.run(["kill", "--signal", signal, "smoke"]);
    const [code] = (await exited) as [number];
    return code;
  }

  /** Runs the command line in the container. */
  inside(args: readonly string[], input = ""): string {
    return this.#podman.run(["exec", "-i", "smoke", "tessera", ...args], input);
  }

  setUp(): void {
    const person = ["--email", "you@example.com"];
    this.#password = this.inside(["admin", "setup", "--organization", "acme", ...person]).trim();
    this.#env = { SERVICE_CLOUD_API_ENDPOINT: this.#url, SERVICE_CLOUD_API_KEY: "" };
    this.#env.SERVICE_CLOUD_API_KEY = this.signIn();
  }

  /** Signs in with the password, and creates a token. */
  signIn(): string {
    const access = ["--developer-operations", "--all-deployments"];
    const sign = ["--endpoint", this.#url, "--email", "you@example.com", "--password-stdin"];
    const name = `smoke-${performance.now().toFixed(0)}`;
    const create = ["token", "create", name, ...access, ...sign, "-o", "json"];
    return (JSON.parse(this.inside(create, `${this.#password}\n`)) as { value: string }).value;
  }

  deploy(): void {
    if (this.#system === "python") {
      this.#deployInContainer();
      return;
    }
    const program = join(ROOT, "bin/tessera.js");
    const service = join(ROOT, "examples/summarizer/service.ts");
    run(process.execPath, [program, "deploy", service], { cwd: ROOT, env: this.#env });
  }

  /** Locks the packages, and imports the service in the sandbox, in a container of the same image. */
  #deployInContainer(): void {
    this.#podman.run([
      ...["run", "--rm", "--network=host", ...confinement("python"), ...indexOptions()],
      ...Object.entries(this.#env).flatMap(([name, value]) => ["-e", `${name}=${value}`]),
      ...["-v", `${join(ROOT, "packaging/image/trial")}:/work:ro`, "-w", "/work"],
      ...[this.#image, "deploy", "service.py", "--memory", "1Gi"],
    ]);
  }

  async call(path: string, body?: string): Promise<string> {
    const headers = { "tessera-deployment": "acme/summarizer", "content-type": "application/json" };
    const method = body === undefined ? "GET" : "POST";
    const answer = await fetch(`${this.#url}/${path}`, { method, headers, ...(body && { body }) });
    const text = await answer.text();
    assert(answer.ok, `${path}: ${answer.status} ${text}`);
    return text;
  }

  async runTask(): Promise<string> {
    const submitted = await this.call("summarize_batch/submit", ARGUMENTS);
    const { task_id } = JSON.parse(submitted) as { readonly task_id: string };
    const result = await this.call(`summarize_batch/get?task_id=${task_id}&wait=30`);
    assert.deepEqual(JSON.parse(result), RESULT);
    return task_id;
  }

  [Symbol.dispose](): void {
    this.#process?.kill("SIGKILL");
    this.#podman[Symbol.dispose]();
  }
}

/** Tries the image in an OCI archive; throws at the first thing that is wrong. */
export async function smoke(archive: string, system: System): Promise<void> {
  using trial = new Trial(system, await freePort());
  const begun = performance.now();
  const say = (what: string): void => {
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    process.stdout.write(`${seconds.padStart(6)} s  ${what}\n`);
  };
  trial.load(archive);
  say("loaded");
  await trial.start();
  say("started: read-only, without capabilities, as 10001");
  trial.setUp();
  say("set up, signed in, token created");
  trial.deploy();
  say("deployed");
  assert.equal(await trial.call("summarize", CALL), SUMMARIES[system]);
  const task = await trial.runTask();
  say("called, task run");
  assert.notEqual(await trial.end("KILL"), 0);
  await trial.start();
  say("killed with SIGKILL and started again");
  const kept = await trial.call(`summarize_batch/get?task_id=${task}`);
  assert.deepEqual(JSON.parse(kept), RESULT);
  trial.signIn();
  await trial.runTask();
  say("has the result from before, signs in, runs tasks");
  assert.equal(await trial.end("TERM"), 0);
  say("stopped with exit code 0");
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { python: { type: "boolean", default: false } },
  });
  const [archive] = positionals;
  if (archive === undefined) {
    process.stderr.write("usage: node packaging/image/smoke.ts ARCHIVE [--python]\n");
    process.exitCode = 2;
  } else {
    await smoke(archive, values.python ? "python" : "small");
  }
}
