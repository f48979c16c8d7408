/**
 * Callers that submit tasks without a break and use them as callers do. Each
 * submit has an idempotency key and is repeated until it is acknowledged, so
 * at the end there is exactly one task for each.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { ask, isDefinite, parsed } from "./client.ts";
import type { Violation } from "./history.ts";
import type { Random } from "./random.ts";

const CALLERS = 24;
const AGAIN_MS = 50;
const THINK_MS = 100;
const WAIT_SECONDS = 5;

export interface Submitted {
  readonly taskId: string;
  readonly endpoint: string;
  readonly number: number;
  /** The caller was told that it is cancelled. */
  cancelled: boolean;
  /** The result that the caller was told, as text. */
  result: string | undefined;
}

export interface LoadOptions {
  readonly origins: readonly string[];
  /** Of each call. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly ledgerUrl: string;
  readonly random: Random;
  /** Told of what callers see that cannot be. */
  onViolation(violation: Violation): void;
  /** Told how long a task took that has ended, from its submit to its result, without its own time. */
  onEnd?(taskId: string, tookMs: number): void;
}

export class Load {
  readonly #options: LoadOptions;
  readonly #run = crypto.randomUUID();
  #acknowledged: Submitted[] = [];
  #callers: Promise<unknown> = Promise.resolve();
  #paused = true;
  #submitted = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** Calls that were made, whatever became of them. */
  get submitted(): number {
    return this.#submitted;
  }

  /** Lets the callers begin. */
  resume(): void {
    this.#paused = false;
    this.#callers = Promise.all(Array.from({ length: CALLERS }, () => this.#caller()));
    // Whoever pauses hears of it.
    this.#callers.catch(() => undefined);
  }

  /** Resolves when every caller has finished what it began, with the tasks since the last pause. */
  async pause(): Promise<readonly Submitted[]> {
    this.#paused = true;
    await this.#callers;
    const acknowledged = this.#acknowledged;
    this.#acknowledged = [];
    return acknowledged;
  }

  /** Submits one call that ends at once. Rejects when its result is not there in time. */
  async probe(withinMs: number): Promise<void> {
    const untilMs = performance.now() + withinMs;
    const task = await this.#submit("work", 0, untilMs);
    if (task === undefined) {
      throw new Error(`no submit was acknowledged within ${withinMs / 1_000} s`);
    }
    while (!(await this.#fetchResult(task))) {
      if (performance.now() > untilMs) {
        const { headers = {} } = this.#options;
        const url = `${this.#origin}/work/status?task_id=${task.taskId}`;
        const answer = await ask(url, { headers });
        const said = answer?.text ?? "nothing";
        throw new Error(`no task ended within ${withinMs / 1_000} s; of the last one ${said}`);
      }
    }
  }

  async #caller(): Promise<void> {
    const { random } = this.#options;
    while (!this.#paused) {
      const kind = random.next();
      const endpoint = kind < 0.02 ? "dying" : kind < 0.12 ? "flaky" : "work";
      const holdMs = random.between(0, 120);
      const begunMs = performance.now();
      let isWatched = false;
      const task = await this.#submit(endpoint, holdMs, Number.POSITIVE_INFINITY);
      if (task === undefined) {
        return;
      }
      if (random.chance(0.08)) {
        await this.#cancel(task, random.chance(0.5));
      } else if (random.chance(0.4)) {
        await sleep(THINK_MS);
      } else {
        isWatched = endpoint === "work";
      }
      // So that the queue stays short, and its length is not what delays a restart.
      while (!(await this.#fetchResult(task)) && !this.#paused) {}
      if (isWatched && task.result !== undefined) {
        this.#options.onEnd?.(task.taskId, performance.now() - begunMs - holdMs);
      }
    }
  }

  get #origin(): string {
    const { random, origins } = this.#options;
    return random.pick(origins) ?? "";
  }

  /** Undefined when the time was over before it was acknowledged. */
  async #submit(
    endpoint: string,
    ...[holdMs, untilMs]: [holdMs: number, untilMs: number]
  ): Promise<Submitted | undefined> {
    const { ledgerUrl, random } = this.#options;
    const number = this.#submitted++;
    const values = { number, ledger: ledgerUrl, holdMs };
    const headers = {
      ...this.#options.headers,
      "idempotency-key": `${this.#run}-${number}`,
    };
    let first: Submitted | undefined;
    for (;;) {
      const url = `${this.#origin}/${endpoint}/submit?replay=always`;
      const answer = await ask(url, { method: "POST", values, headers });
      if (!isDefinite(answer)) {
        if (performance.now() > untilMs) {
          return undefined;
        }
        await sleep(AGAIN_MS);
        continue;
      }
      const { task_id: taskId } = (parsed(answer.text) ?? {}) as { task_id?: string };
      if (taskId === undefined || answer.status >= 300) {
        throw new Error(`a submit was answered ${answer.status}: ${answer.text}`);
      }
      if (first !== undefined) {
        if (first.taskId !== taskId) {
          const message = `its key led to another task, ${taskId}`;
          this.#options.onViolation({ kind: "ended twice", taskId: first.taskId, message });
        }
        return first;
      }
      first = { taskId, endpoint, number, cancelled: false, result: undefined };
      this.#acknowledged.push(first);
      // Some callers do not trust the answer.
      if (!random.chance(0.1)) {
        return first;
      }
    }
  }

  async #cancel(task: Submitted, abort: boolean): Promise<void> {
    const { endpoint, taskId } = task;
    const url = `${this.#origin}/${endpoint}/cancel?task_id=${taskId}&abort=${abort}`;
    const { headers = {} } = this.#options;
    const answer = await ask(url, { method: "PUT", headers, waitSeconds: 10 });
    if (answer?.status === 200) {
      task.cancelled = true;
    }
  }

  /** True when the task has ended. */
  async #fetchResult(task: Submitted): Promise<boolean> {
    const { endpoint, taskId } = task;
    const url = `${this.#origin}/${endpoint}/get?task_id=${taskId}&wait=${WAIT_SECONDS}`;
    const { headers = {} } = this.#options;
    const answer = await ask(url, { headers, waitSeconds: WAIT_SECONDS });
    if (!isDefinite(answer)) {
      await sleep(AGAIN_MS);
      return false;
    }
    if (answer.status === 200) {
      task.result = answer.text;
    } else if (answer.status === 404) {
      const message = `it was acknowledged, and then: ${answer.text}`;
      this.#options.onViolation({ kind: "lost", taskId, message });
    }
    return !answer.text.includes("TASK_NOT_FINISHED");
  }
}
