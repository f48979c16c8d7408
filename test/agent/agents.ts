/** Agents in this process, each on a folder of its own. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { runWorkers } from "../../src/app/worker.ts";
import { readWorkerConfig } from "../../src/config/worker.ts";
import { Folder } from "../e2e/start/platform.ts";

/** Times that pass in a test are short; a machine that is busy needs some. */
const LEAVE_WITHIN_MS = 10_000;

export class TestAgent implements AsyncDisposable {
  readonly #folder = new Folder();
  readonly #leave = new AbortController();
  readonly done: Promise<void>;

  constructor(url: string, flags: Readonly<Record<string, string>> = {}) {
    const { config, secrets } = readWorkerConfig(
      {
        join: url,
        deployment: "echo",
        data: join(this.#folder.path, "data"),
        logLevel: "silent",
        sandbox: "permission",
        ...flags,
      },
      { PATH: process.env.PATH, TESSERA_WORKER_TOKEN: "a-token" },
    );
    this.done = runWorkers(config, secrets, { leave: this.#leave.signal, onJoined() {} });
    this.done.catch(() => {
      // Who waits for it sees it.
    });
  }

  leave(): void {
    this.#leave.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.leave();
    await Promise.race([this.done.catch(() => {}), sleep(LEAVE_WITHIN_MS)]);
    this.#folder[Symbol.dispose]();
  }
}
