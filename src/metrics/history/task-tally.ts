/**
 * A tally by deployment and endpoint: of tasks (what ended, how long it waited and
 * how long it ran), and of calls (how many, how many failed, how long they took). Nodes
 * keep one for each organization and interval, beside the measures of the organization,
 * so that its statistics are read without reading a row for each deployment, or any task.
 */

/** What happened to the tasks of an endpoint. */
export interface TaskSums {
  readonly succeeded: number;
  /** Also those that were not started in time. */
  readonly failed: number;
  readonly cancelled: number;
  /** Attempts that failed and are repeated. */
  readonly retried: number;
  /** Buckets of `METRICS.queueWait`; empty when no attempt began. */
  readonly queueCounts: readonly number[];
  /** Buckets of `METRICS.runTime`; empty when no attempt ended. */
  readonly runCounts: readonly number[];
}

/**
 * Endpoints with tasks that are told apart in one interval of one node, for each organization; and
 * as many with calls.
 */
const MAX_TALLIED_ENDPOINTS = 500;

/** The endpoint of a deployment under which those beyond the limit are summed. */
const OTHER_ENDPOINTS = "";

export const NO_TASKS: TaskSums = {
  succeeded: 0,
  failed: 0,
  cancelled: 0,
  retried: 0,
  queueCounts: [],
  runCounts: [],
};

/** The field that counts an `outcome` of `METRICS.tasksFinished`. */
export const COUNTED_AS: {
  readonly [outcome: string]: "succeeded" | "failed" | "cancelled" | "retried" | undefined;
} = {
  success: "succeeded",
  failure: "failed",
  expired: "failed",
  cancelled: "cancelled",
  retried: "retried",
};

/** The calls of an endpoint that were answered. */
export interface CallSums {
  readonly answered: number;
  /** Of them, those that were answered with an error. */
  readonly failed: number;
  /** Those by their code, such as `invalid_argument`. Those that an earlier version counted are in none. */
  readonly codes: ReadonlyMap<string, number>;
  /** Buckets of `METRICS.requestDuration`. */
  readonly counts: readonly number[];
}

export const NO_CALLS: CallSums = { answered: 0, failed: 0, codes: new Map(), counts: [] };

/** Sums by deployment (its id) and endpoint, of a bounded number of endpoints. */
class ByEndpoint<Sums> {
  readonly #maxEndpoints: number;
  readonly #sumOf: (one: Sums, other: Sums) => Sums;
  readonly #deployments = new Map<string, Map<string, Sums>>();
  #size = 0;

  constructor(maxEndpoints: number, sum: (one: Sums, other: Sums) => Sums) {
    this.#maxEndpoints = maxEndpoints;
    this.#sumOf = sum;
  }

  add(deploymentId: string, endpoint: string, sums: Sums): void {
    const endpoints = this.#deployments.get(deploymentId) ?? new Map<string, Sums>();
    this.#deployments.set(deploymentId, endpoints);
    const isKnown = endpoints.has(endpoint);
    const key = isKnown || this.#size < this.#maxEndpoints ? endpoint : OTHER_ENDPOINTS;
    const before = endpoints.get(key);
    this.#size += before === undefined ? 1 : 0;
    endpoints.set(key, before === undefined ? sums : this.#sumOf(before, sums));
  }

  *entries(): Generator<readonly [deploymentId: string, endpoint: string, sums: Sums]> {
    for (const [deploymentId, endpoints] of this.#deployments) {
      for (const [endpoint, sums] of endpoints) {
        yield [deploymentId, endpoint, sums];
      }
    }
  }

  of(deploymentId: string): ReadonlyMap<string, Sums> {
    return this.#deployments.get(deploymentId) ?? new Map();
  }
}

/** Sums of tasks and of calls. */
export class TaskTally {
  readonly #tasks: ByEndpoint<TaskSums>;
  readonly #calls: ByEndpoint<CallSums>;

  constructor(maxEndpoints = MAX_TALLIED_ENDPOINTS) {
    this.#tasks = new ByEndpoint(maxEndpoints, sumOf);
    this.#calls = new ByEndpoint(maxEndpoints, sumOfCalls);
  }

  /** Endpoints without any task are left out. */
  add(deploymentId: string, endpoint: string, sums: TaskSums): void {
    if (!isNothing(sums)) {
      this.#tasks.add(deploymentId, endpoint, sums);
    }
  }

  /** Endpoints without any call are left out. */
  addCalls(deploymentId: string, endpoint: string, sums: CallSums): void {
    if (sums.answered > 0) {
      this.#calls.add(deploymentId, endpoint, sums);
    }
  }

  addAll(other: TaskTally): void {
    for (const [deploymentId, endpoint, sums] of other.calls()) {
      this.addCalls(deploymentId, endpoint, sums);
    }
    for (const [deploymentId, endpoint, sums] of other.entries()) {
      this.add(deploymentId, endpoint, sums);
    }
  }

  entries(): Iterable<readonly [deploymentId: string, endpoint: string, sums: TaskSums]> {
    return this.#tasks.entries();
  }

  calls(): Iterable<readonly [deploymentId: string, endpoint: string, sums: CallSums]> {
    return this.#calls.entries();
  }

  /** By endpoint; empty for a deployment without tasks. */
  of(deploymentId: string): ReadonlyMap<string, TaskSums> {
    return this.#tasks.of(deploymentId);
  }

  /** By endpoint; those of no endpoint, and of endpoints beyond the limit, under the empty name. */
  callsOf(deploymentId: string): ReadonlyMap<string, CallSums> {
    return this.#calls.of(deploymentId);
  }
}

export function sumOfCalls(one: CallSums, other: CallSums): CallSums {
  return {
    answered: one.answered + other.answered,
    failed: one.failed + other.failed,
    codes: addCodes(one.codes, other.codes),
    counts: addCounts(one.counts, other.counts),
  };
}

function addCodes(one: CallSums["codes"], other: CallSums["codes"]): CallSums["codes"] {
  const codes = new Map(one);
  for (const [code, calls] of other) {
    codes.set(code, (codes.get(code) ?? 0) + calls);
  }
  return codes;
}

export function sumOf(one: TaskSums, other: TaskSums): TaskSums {
  return {
    succeeded: one.succeeded + other.succeeded,
    failed: one.failed + other.failed,
    cancelled: one.cancelled + other.cancelled,
    retried: one.retried + other.retried,
    queueCounts: addCounts(one.queueCounts, other.queueCounts),
    runCounts: addCounts(one.runCounts, other.runCounts),
  };
}

/** Bucket by bucket; empty ones at the end may be left out. */
function addCounts(one: readonly number[], other: readonly number[]): readonly number[] {
  const [longer, shorter] = one.length >= other.length ? [one, other] : [other, one];
  return longer.map((count, index) => count + (shorter[index] ?? 0));
}

function isNothing(sums: TaskSums): boolean {
  const { succeeded, failed, cancelled, retried, queueCounts, runCounts } = sums;
  const ended = succeeded + failed + cancelled + retried;
  return ended === 0 && [...queueCounts, ...runCounts].every((count) => count === 0);
}

/**
 * A row of the database: `[deploymentId, endpoint, [ended], [queueCounts], [runCounts]]` each. The
 * calls of an endpoint have an entry of their own: their numbers follow those of what ended, and
 * `[callCounts]` and how many calls failed with each code come last. Earlier versions wrote no
 * codes, or one entry for all calls of a deployment, with an empty endpoint.
 */
type StoredTasks = readonly (readonly [
  deploymentId: string,
  endpoint: string,
  ended: readonly number[],
  queueCounts: readonly number[],
  runCounts: readonly number[],
  callCounts?: readonly number[],
  failedCodes?: Readonly<Record<string, number>>,
])[];

/** The text of a tally in the database. */
export function writeTally(tally: TaskTally): string {
  const stored: StoredTasks[number][] = [...tally.entries()].map(
    ([deploymentId, endpoint, sums]) => [
      deploymentId,
      endpoint,
      [sums.succeeded, sums.failed, sums.cancelled, sums.retried],
      withoutZeros(sums.queueCounts),
      withoutZeros(sums.runCounts),
    ],
  );
  for (const [deploymentId, endpoint, { answered, failed, codes, counts }] of tally.calls()) {
    const ended = [0, 0, 0, 0, answered, failed];
    const entry = [deploymentId, endpoint, ended, [], [], withoutZeros(counts)] as const;
    stored.push(codes.size === 0 ? entry : [...entry, Object.fromEntries(codes)]);
  }
  return stored.length === 0 ? "" : JSON.stringify(stored);
}

/** Adds what `writeTally` wrote. */
export function readTally(text: string, into: TaskTally): void {
  const stored = text === "" ? [] : (JSON.parse(text) as StoredTasks);
  for (const [deploymentId, endpoint, ended, queueCounts, runCounts, ...ofCalls] of stored) {
    const [counts = [], failedCodes = {}] = ofCalls;
    const [succeeded = 0, failed = 0, cancelled = 0, retried = 0, ...calls] = ended;
    const [answered = 0, failedCalls = 0] = calls;
    const codes = new Map(Object.entries(failedCodes));
    into.addCalls(deploymentId, endpoint, { answered, failed: failedCalls, codes, counts });
    const sums = { succeeded, failed, cancelled, retried, queueCounts, runCounts };
    into.add(deploymentId, endpoint, sums);
  }
}

/** Leaves out the empty buckets at the end. */
function withoutZeros(counts: readonly number[]): readonly number[] {
  return counts.slice(0, counts.findLastIndex((count) => count > 0) + 1);
}
