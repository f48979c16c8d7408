/** Submits at a steady rate, with the id of each task that was acknowledged. */
import { Agent } from "node:http";
import { call } from "../hosting/world.ts";
import type { Platform } from "../start/platform.ts";

/** Calls under way; a rate that needs more is not reached. */
const CONNECTIONS = 16;

export class SubmitLoad implements AsyncDisposable {
  /** In the order of their acknowledgements. */
  readonly acknowledged: string[] = [];
  readonly #agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  readonly #platform: Platform;
  readonly #rate: number;
  readonly #beganMs = performance.now();
  readonly #callers: Promise<void>[];
  #submitted = 0;
  #stopped = false;

  /** `rate` is in submits per second. */
  constructor(platform: Platform, rate: number) {
    this.#platform = platform;
    this.#rate = rate;
    this.#callers = Array.from({ length: CONNECTIONS }, () => this.#submitUntilStopped());
  }

  /** Acknowledged per second, since the load began. */
  get perSecond(): number {
    return (this.acknowledged.length * 1_000) / (performance.now() - this.#beganMs);
  }

  /** Resolves when so many were acknowledged. */
  async reaches(count: number): Promise<void> {
    while (this.acknowledged.length < count) {
      await Promise.race([...this.#callers, new Promise(setImmediate)]);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#callers);
    this.#agent.destroy();
  }

  async #submitUntilStopped(): Promise<void> {
    while (!this.#stopped) {
      const number = this.#submitted;
      this.#submitted += 1;
      await this.#due(number);
      const { status, json, text } = await call(this.#platform, "echo", "/work/submit", {
        body: { text: `task ${number}` },
        agent: this.#agent,
      });
      if (status !== 202) {
        throw new Error(`a submit was answered ${status} ${text}`);
      }
      this.acknowledged.push(json.task_id);
    }
  }

  /** The load is open: the n-th submit is due at its time, however long others take. */
  async #due(number: number): Promise<void> {
    const inMs = this.#beganMs + (number * 1_000) / this.#rate - performance.now();
    if (inMs > 0) {
      await new Promise((resolve) => setTimeout(resolve, inMs));
    }
  }
}
