/**
 * A storage that fails: every call goes wrong at a given rate, in each way in
 * which a database can go wrong, chosen by a seeded generator.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { problem } from "../../../src/errors.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import type { Random } from "../../chaos/random.ts";

export const FAULTS = [
  /** Not carried out, and it takes a while to find out. */
  "timeout",
  /** Carried out, and answered with an error. */
  "executed",
  /** Carried out after its error was answered: a commit on its way to a broken connection. */
  "executed_late",
  "busy",
  /** The beginning of a time in which every call fails. */
  "disconnected",
  /** What writes fails; reads work. */
  "disk_full",
] as const;

export type Fault = (typeof FAULTS)[number];

/** Share of the calls that go wrong in each way. */
export type FaultRates = Readonly<Record<Fault, number>>;

const TIMEOUT_MS = 50;
const LATE_MS = 200;
const DISCONNECTED_MS = 100;

const READS = new Set<string | symbol>(
  ["getTask", "getArguments", "getResult", "getHistory", "listAttempts", "listAborts"].concat([
    "listTasks",
    "queuePosition",
    "countTasks",
    "nextRunAt",
  ]),
);

type Method = (parameters: unknown) => Promise<unknown>;

export class Faults {
  /** Nothing goes wrong while it is false. */
  active = false;
  /** How often each fault happened, by method. */
  readonly counts = new Map<string, number>();
  readonly #random: Random;
  readonly #rates: FaultRates;
  readonly #late = new Set<Promise<unknown>>();
  #disconnectedUntilMs = 0;

  constructor(random: Random, rates: FaultRates) {
    this.#random = random;
    this.#rates = rates;
  }

  /** The storage, with faults. Starting and ending it never fails. */
  around(storage: Storage): Storage {
    return new Proxy(storage, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== "function") {
          return value;
        }
        const method = value.bind(target) as Method;
        return name === "start" || typeof name === "symbol"
          ? method
          : (parameters: unknown) => this.#call(name, () => method(parameters));
      },
    });
  }

  /** Resolves when nothing is carried out late any more. */
  async settled(): Promise<void> {
    await Promise.all(this.#late);
  }

  async #call(name: string, call: () => Promise<unknown>): Promise<unknown> {
    const fault = this.#choose(name);
    if (fault === undefined) {
      return call();
    }
    const key = `${name} ${fault}`;
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
    if (fault === "timeout") {
      await sleep(TIMEOUT_MS);
    } else if (fault === "executed") {
      await call();
    } else if (fault === "executed_late") {
      const late = sleep(this.#random.between(1, LATE_MS))
        .then(call)
        .finally(() => this.#late.delete(late));
      this.#late.add(late);
    }
    throw problem("STORAGE_UNAVAILABLE", `${name}: ${fault}, on purpose`, { retryAfterMs: 1_000 });
  }

  #choose(name: string): Fault | undefined {
    if (!this.active) {
      return undefined;
    }
    if (performance.now() < this.#disconnectedUntilMs) {
      return "disconnected";
    }
    let drawn = this.#random.next();
    const fault = FAULTS.find((each) => {
      drawn -= this.#rates[each];
      return drawn < 0;
    });
    if (fault === "disconnected") {
      this.#disconnectedUntilMs = performance.now() + DISCONNECTED_MS;
    }
    return fault === "disk_full" && READS.has(name) ? undefined : fault;
  }
}
