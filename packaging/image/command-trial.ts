/** Blocks of commands of the documents, run with an image: what `commands.ts` says. */
import { strict as assert } from "node:assert";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type DocumentedBlock, documentedBlocks } from "../../test/e2e/docs/blocks.ts";
import { ROOT } from "../program.ts";
import { run } from "../run.ts";
import { type System, USER } from "./context.ts";
import { type Block, means, PYTHON, SMALL } from "./documented.ts";
import { confinement, Podman, ULIMITS } from "./podman.ts";

/** Where the documents have their server. */
export const URL = "http://localhost:3000";
const DEVELOPER = "--developer-operations --protected-endpoint --all-deployments";
const READY_MS = 60_000;

/** Variables that reach `tessera` in its container where they are set. */
const PASSED = [
  "OTEL_EXPORTER_OTLP_ENDPOINT",
  "SERVICE_CLOUD_API_ENDPOINT",
  "SERVICE_CLOUD_API_KEY",
  "TESSERA_BACKUP_PASSPHRASE",
  "TESSERA_DATA",
  "TESSERA_DRAIN_DELAY",
];

/** Folders that a container gets beside the platform's data: for backups, and what is restored. */
const VOLUMES = ["backups:/backups:U", "restored:/var/lib/tessera-restored:U"];

export class CommandTrial implements Disposable {
  readonly #podman = new Podman();
  readonly #folder = mkdtempSync(join(tmpdir(), "tessera-commands-"));
  readonly #system: System;
  readonly #blocks = documentedBlocks();
  readonly #unused: Set<Block>;
  #password = "";
  readonly #begun = performance.now();
  /** The variables of all commands that follow. */
  readonly env: Record<string, string>;
  /** Where commands run; containers see it at the same path. */
  readonly work: string;

  constructor(archive: string, system: System) {
    this.#system = system;
    this.#unused = new Set(system === "python" ? PYTHON : SMALL);
    this.work = join(this.#folder, "work");
    const bin = join(this.#folder, "bin");
    this.env = {
      PATH: `${bin}:${process.env.PATH}`,
      HOME: this.#folder,
      no_proxy: "*",
      TESSERA_DRAIN_DELAY: "0s",
    };
    // Containers run as another user, which reads and writes there.
    chmodSync(this.#folder, 0o755);
    mkdirSync(this.work);
    chownSync(this.work, USER, USER);
    writeFileSync(join(this.#folder, ".curlrc"), "fail-with-body\nsilent\nshow-error\n");
    mkdirSync(bin);
    this.#writePrograms(bin, this.#podman.load(archive));
    this.say("loaded");
  }

  #writePrograms(bin: string, image: string): void {
    const program = run("sh", ["-c", "command -v podman"]);
    const podman = ["exec", program, ...this.#podman.args].join(" ");
    const mounts = [`${this.work}:${this.work}`, "tessera:/data", ...VOLUMES];
    const own = [
      ...["run", "--rm", "-i", "--network=host", ...confinement(this.#system)],
      ...mounts.flatMap((mount) => ["-v", mount]),
      ...PASSED.flatMap((name) => ["-e", name]),
    ];
    const tessera = `${podman} ${own.map((arg) => `'${arg}'`).join(" ")} -w "$PWD" ${image} "$@"`;
    const programs = {
      // This machine may allow less than podman asks for.
      podman: `case $1 in run) shift; set -- run ${ULIMITS.join(" ")} "$@";; esac\n${podman} "$@"`,
      tessera,
      npx: `name=$1\nshift\ncase $name in tessera|tessera-platform) ${tessera};; esac\nexec "${ROOT}/node_modules/.bin/$name" "$@"`,
    };
    for (const [name, text] of Object.entries(programs)) {
      writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    }
  }

  say(what: string): void {
    const seconds = ((performance.now() - this.#begun) / 1000).toFixed(1);
    process.stdout.write(`${seconds.padStart(6)} s  ${what}\n`);
  }

  /** The blocks that an entry of the list means; from then on it counts as run. */
  blocks(page: string, start: Block[1]): readonly DocumentedBlock[] {
    const entry = [...this.#unused].find((it) => it[0] === page && String(it[1]) === String(start));
    assert(entry, `${page}: ${start} is not in the list of what runs, or runs twice`);
    this.#unused.delete(entry);
    this.say(`${page}: ${start}`);
    return this.#blocks.filter((block) => means(entry, block));
  }

  /** The text of the one block that an entry means. */
  block(page: string, start: string): string {
    const [found, ...others] = this.blocks(page, start);
    assert(found && others.length === 0, `${page} has not one block that begins with ${start}`);
    return found.text;
  }

  /** Runs commands in bash, as they are; returns what they print. Throws when one fails. */
  run(commands: string, { env = {}, input = "" } = {}): string {
    const args = ["-euo", "pipefail", "-c", commands];
    return run("bash", args, { cwd: this.work, env: { ...this.env, ...env }, input });
  }

  /** Starts what runs until it is stopped, and waits until it is ready at `url`. */
  async serve(command: string, url = URL): Promise<AsyncDisposable> {
    // One command: bash becomes it, and signals reach it.
    const child = spawn("bash", ["-c", command], {
      cwd: this.work,
      env: { ...process.env, ...this.env },
      stdio: "ignore",
    });
    const exited = once(child, "exit");
    await ready(url, command, () => child.exitCode === null);
    return {
      // SIGTERM, which podman passes on, and a drain that ends with 0.
      [Symbol.asyncDispose]: async () => {
        child.kill("SIGTERM");
        assert.deepEqual(await exited, [0, null], `it does not end with 0: ${command}`);
      },
    };
  }

  /**
   * Runs the block of docs/install.md that starts the platform, but for the lines that build and
   * load the image; returns what it prints.
   */
  async install(start: string): Promise<string> {
    const lines = this.block("docs/install.md", start).split(/^(?:npm run|podman load) .*\n/m);
    const said = this.run(lines.join(""));
    await ready(URL, "the platform of docs/install.md");
    return said;
  }

  /** Logs all commands that follow in, as who has set the platform up with this password. */
  logIn(password: string): void {
    this.#password = password;
    const value = this.createToken("trial", DEVELOPER);
    Object.assign(this.env, { SERVICE_CLOUD_API_ENDPOINT: URL, SERVICE_CLOUD_API_KEY: value });
  }

  /** Runs one command about tokens for the person of `logIn`, whose password it asks for. */
  runSignedIn(command: string): string {
    const sign = `--endpoint ${URL} --email you@example.com --password-stdin`;
    return this.run(`${command.trim()} ${sign}`, { input: this.#password });
  }

  /** The value of a new token of that person. */
  createToken(name: string, access: string): string {
    const created = this.runSignedIn(`tessera token create ${name} ${access} -o json`);
    return (JSON.parse(created) as { readonly value: string }).value;
  }

  /** Throws unless every entry of the list has run. */
  finish(): void {
    assert.deepEqual([...this.#unused], [], "these are in the list, and were not run");
    this.say("all commands run");
  }

  [Symbol.dispose](): void {
    this.#podman[Symbol.dispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Resolves when a server is ready; throws when it is not in time, or has ended. */
async function ready(url: string, what: string, runs = () => true): Promise<void> {
  const begun = performance.now();
  const isReady = () =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isReady())) {
    assert(runs(), `it ended before it was ready: ${what}`);
    assert(performance.now() - begun < READY_MS, `it is not ready after 60 s: ${what}`);
    await sleep(100);
  }
}
