import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Deployment } from "../../../src/deployments/deployment.ts";
import { isFinal } from "../../../src/tasks/task.ts";
import type { Random } from "../../chaos/random.ts";
import { reasonOf, type Told } from "./queue.ts";

const ASK_AGAIN_MS = 20;
/** Longer than two claims in a row that were carried out and never answered. */
const WAIT_MS = 60_000;

export interface CallerOptions {
  readonly hosted: Deployment;
  readonly random: Random;
  readonly told: Told;
  readonly ledgerUrl: string;
}

/** Somebody who submits a call, and does with it whatever callers do. */
export class Caller {
  readonly #options: CallerOptions;
  readonly #number: number;
  readonly #endpoint: string;
  readonly #key: string | undefined;

  constructor(number: number, options: CallerOptions) {
    const { random } = options;
    this.#options = options;
    this.#number = number;
    const kind = random.next();
    this.#endpoint =
      kind < 0.03 ? "dying" : kind < 0.1 ? "failing" : kind < 0.25 ? "flaky" : "work";
    this.#key = random.chance(0.7) ? `key-${number}` : undefined;
  }

  async run(): Promise<void> {
    const { random, told } = this.#options;
    const taskId = await this.#submit();
    if (taskId === undefined) {
      return;
    }
    if (random.chance(0.1)) {
      await this.#cancel(taskId, random.chance(0.5));
    }
    const status = await this.#wait(taskId);
    if (this.#key !== undefined && random.chance(0.2) && (await this.#submit()) !== taskId) {
      told.wrong.push(`the key of ${taskId} led to another task`);
    }
    if (status !== "success" && random.chance(0.3)) {
      await this.#retry(taskId);
    }
  }

  /** With a key until it is acknowledged; without one, nobody knows after an error whether it was made. */
  async #retry(taskId: string): Promise<void> {
    const { hosted, told, random } = this.#options;
    const endpointOf = (name: string) => hosted.taskEndpoint(name).manifest;
    const idempotency = this.#key
      ? { key: `${this.#key} again`, digest: taskId, replay: "always" as const }
      : undefined;
    for (;;) {
      try {
        const { task } = await hosted.queue.amending.retry({ taskId, idempotency }, endpointOf);
        told.acknowledged.set(task.taskId, this.#number);
        await this.#wait(task.taskId);
        return;
      } catch (err) {
        reasonOf(err);
        if (idempotency === undefined) {
          told.uncertain.add(this.#number);
          return;
        }
        await sleep(random.between(1, ASK_AGAIN_MS));
      }
    }
  }

  /** The id of the acknowledged task; undefined when there may be none. */
  async #submit(): Promise<string | undefined> {
    const { hosted, told, random, ledgerUrl } = this.#options;
    const { manifest } = hosted.taskEndpoint(this.#endpoint);
    const holdMs = this.#number % 10 === 0 ? 100 : 0;
    const values = { number: this.#number, ledger: ledgerUrl, holdMs };
    const payload = { json: JSON.stringify(values), files: [] };
    for (;;) {
      try {
        const options = this.#key
          ? { idempotency: { key: this.#key, digest: payload.json, replay: "always" as const } }
          : {};
        const { task } = await hosted.queue.submit(manifest, payload, options);
        told.acknowledged.set(task.taskId, this.#number);
        return task.taskId;
      } catch (err) {
        reasonOf(err);
        if (this.#key === undefined) {
          told.uncertain.add(this.#number);
          return undefined;
        }
        await sleep(random.between(1, ASK_AGAIN_MS));
      }
    }
  }

  async #cancel(taskId: string, abort: boolean): Promise<void> {
    const { hosted, told } = this.#options;
    for (;;) {
      try {
        const task = await hosted.queue.cancel({ taskId }, abort);
        if (task.status === "cancelled") {
          told.cancelled.add(taskId);
        }
        return;
      } catch (err) {
        if (reasonOf(err) !== "STORAGE_UNAVAILABLE") {
          return;
        }
        await sleep(ASK_AGAIN_MS);
      }
    }
  }

  /** The final status, which is the same however often one asks. */
  async #wait(taskId: string): Promise<string> {
    const { hosted, told } = this.#options;
    for (;;) {
      try {
        const { task, result } = await hosted.tasks.result({ taskId, waitMs: WAIT_MS });
        if (!isFinal(task.status)) {
          told.wrong.push(`${taskId} was ${task.status} for ${WAIT_MS} ms, or nobody was told`);
          return task.status;
        }
        const again = await hosted.tasks.result({ taskId });
        if (!isDeepStrictEqual(plain(again), plain({ task, result }))) {
          told.wrong.push(`${taskId} changed after its end`);
        }
        return task.status;
      } catch (err) {
        reasonOf(err);
        await sleep(ASK_AGAIN_MS);
      }
    }
  }
}

/** Without members that are undefined; in which order they come says nothing. */
function plain(value: object): unknown {
  return JSON.parse(JSON.stringify(value));
}
