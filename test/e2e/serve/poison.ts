/** Innocent tasks beside tasks that end their workers, and what becomes of both. */
import type { Served, Shown } from "./served.ts";

export interface PoisonOptions {
  readonly innocents: number;
  /** How long an innocent task runs. */
  readonly ms: number;
  /** Endpoints whose tasks end their worker; each is submitted once. */
  readonly poison: readonly string[];
}

export interface Harm {
  /** Innocent tasks that did not succeed. */
  readonly failed: readonly Shown[];
  /** Of each task that is poison, by endpoint. */
  readonly poison: Readonly<Record<string, Pick<Shown, "status" | "attempt"> & { reason: string }>>;
  /** The longest time in which no innocent task ended while some waited. */
  readonly longestPauseMs: number;
}

/** Submits all of them mixed, and waits for their ends. */
export async function amongPoison(served: Served, options: PoisonOptions): Promise<Harm> {
  const { innocents, ms, poison } = options;
  const every = Math.max(1, Math.floor(innocents / (poison.length + 1)));
  const ids: string[] = [];
  const poisoned: [string, string][] = [];
  for (let at = 0; at < innocents; at++) {
    ids.push(await served.submit("innocent", { ms }));
    const endpoint = poison[Math.floor(at / every)];
    if (endpoint && at % every === 1) {
      poisoned.push([endpoint, await served.submit(endpoint, {})]);
    }
  }
  const endings = await Promise.all(ids.map((id) => until(served, "innocent", id)));
  const ended = await Promise.all(
    poisoned.map(async ([endpoint, id]) => [endpoint, await until(served, endpoint, id)] as const),
  );
  const times = endings
    .map(({ finished_at }) => Date.parse(finished_at ?? ""))
    .sort((a, b) => a - b);
  return {
    failed: endings.filter(({ status }) => status !== "success"),
    poison: Object.fromEntries(
      ended.map(([endpoint, { status, attempt, failure }]) => [
        endpoint,
        { status, attempt, reason: failure?.reason },
      ]),
    ),
    longestPauseMs: Math.max(0, ...times.slice(1).map((at, index) => at - (times[index] ?? at))),
  };
}

async function until(served: Served, endpoint: string, id: string): Promise<Shown> {
  for (;;) {
    const task = await served.status(endpoint, id, 20);
    if (["success", "failure", "cancelled"].includes(task.status)) {
      return task;
    }
  }
}
