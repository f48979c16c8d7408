/**
 * Why a task is queued, in one true sentence. It is computed when somebody asks, from what the node
 * that answers knows then, and stored nowhere.
 *
 * `ROWS` is the catalogue, in its order: the first row that applies is the answer. First comes what
 * holds for the task whatever its deployment does, then what keeps the deployment from working at
 * all, then its workers, and at last the queue in front of them. A further reason (such as the limit
 * of a key) is a row there, a value of `QueuedCode` in task.proto, and what it is told by in
 * `QueuedFacts`.
 *
 * A sentence names nothing that callers may not know. What is for those who see the deployment (how
 * a worker ended, with its last line; who has the GPU; which limit is reached) is apart, in `detail`.
 */
import type { RecentEnd } from "../pool/restart-backoff.ts";
import { formatDuration } from "../protocol/duration.ts";
import type { ByKeyManifest, RateManifest } from "../protocol/manifest.ts";
import { MAX_POSITION } from "../queue/estimate.ts";
import type { PausedEndpoint } from "../storage/accounts/organizations.ts";
import type { FailureReason, Task } from "../tasks/task.ts";

/** Characters of a detail; a message of a crash may be long. */
const MAX_DETAIL_CHARACTERS = 600;

/** The reasons, as `tessera.v1.QueuedCode` spells them. */
type QueuedCode =
  | "SCHEDULED"
  | "RETRYING"
  | "STOPPED"
  | "SHUTTING_DOWN"
  | "STORAGE_UNAVAILABLE"
  | "PREPARING"
  | "REVISION_FAILED"
  | "ENDPOINT_MISSING"
  | "NO_MATCHING_WORKER"
  | "WORKER_STARTING"
  | "WORKER_CRASHES"
  | "GPU_TAKEN"
  | "NO_ROOM"
  | "NO_WORKER_YET"
  | "WORKER_UNRESPONSIVE"
  | "ALONE"
  | "BATCHING"
  | "WORKERS_BUSY"
  | "DEPLOYMENT_LIMIT"
  | "KEY_LIMIT"
  | "KEY_RATE"
  | "STARTS_NOW"
  | "ON_OTHER_NODES"
  | "PAUSED";

export interface QueuedReason {
  readonly code: QueuedCode;
  /** A sentence for every caller, without its full stop. */
  readonly message: string;
  /** What those who see the deployment are told besides, bounded and without secrets. */
  readonly detail?: string;
}

/** A task that is queued. */
export type QueuedTask = Pick<Task, "endpoint" | "runAtMs" | "returned">;

/** What a node knows of why tasks of an endpoint wait. */
export interface QueuedFacts {
  readonly nowMs: number;
  /** The deployment was stopped. */
  readonly isStopped: boolean;
  /** Since when its endpoint is paused, and by whom; undefined: it is not. */
  readonly paused?: Omit<PausedEndpoint, "endpoint"> | undefined;
  /** The node shuts down. */
  readonly isDraining: boolean;
  /** False where the database refused the last claim or heartbeat. */
  readonly storageAnswers: boolean;
  /** Why the revision could not start; undefined while one works, or is tried. */
  readonly failure?: string | undefined;
  /** What is brought to the machine before workers start, such as a model with its share. */
  readonly preparing?: string | undefined;
  /** False where no revision serves here yet. */
  readonly serves: boolean;
  /** False where the revision that serves has no such endpoint. */
  readonly hasEndpoint: boolean;
  /** Which worker is missing, where none that this node may start runs the endpoint. */
  readonly awaited?: string | undefined;
  /** Why one that has joined does not run the service; undefined: it does, or none has. */
  readonly joinedFault?: string | undefined;
  /** What its launcher says of machines that do not come; undefined: nothing, or nobody asked. */
  readonly launch?: string | undefined;
  /** Of workers of this node, and those that have joined it. */
  readonly workers: EndpointWorkers;
  /** Why a worker waits for room on the node; undefined: none does. */
  readonly shortage?: { readonly ofGpus: boolean; readonly text: string } | undefined;
  /** How the last worker ended, or why it could not start; undefined: none did lately. */
  readonly crash?: (Omit<RecentEnd, "reason"> & { readonly text: string }) | undefined;
  /** Tasks wait for others of their batch. */
  readonly gathers: boolean;
  /** How many workers may be there; undefined: their number is fixed, or a matter of who joins. */
  readonly limit?: number | undefined;
  /** What its key may have; undefined: as much as it has. */
  readonly perKey?: ByKeyManifest | undefined;
  /** Workers of other nodes that are ready, as these have reported; undefined: nobody asked. */
  readonly readyElsewhere?: number | undefined;
  /** Tasks before it; undefined: nobody has counted them. */
  readonly position?: number | undefined;
}

/** What only those who ask know, and those who start a deployment. */
export type QueuedKnowledge = Partial<
  Pick<
    QueuedFacts,
    "position" | "readyElsewhere" | "launch" | "failure" | "preparing" | "isStopped" | "paused"
  >
>;

/** How it stands with the workers that run an endpoint. */
interface EndpointWorkers {
  /** How many there should be. */
  readonly wanted: number;
  /** How many take calls, even if they have to wait for a slot. */
  readonly ready: number;
  /** How many of those answer. */
  readonly answering: number;
  /** Their free slots. */
  readonly free: number;
  /** When the oldest began that loads the service; undefined: none does. */
  readonly startingSinceMs?: number | undefined;
}

/** None takes calls. */
export const NO_TAKERS = { ready: 0, answering: 0, free: 0 };

/** Of a deployment of which nothing is on this node: at rest, unless more is known. */
export const NOTHING_HERE: Omit<QueuedFacts, "nowMs"> = {
  ...{ isStopped: false, isDraining: false, storageAnswers: true },
  ...{ serves: true, hasEndpoint: true, gathers: false },
  workers: { wanted: 0, ...NO_TAKERS },
};

interface Situation extends QueuedFacts {
  readonly task: QueuedTask;
}

/** What a row says: a sentence, or that with its detail. Anything else: it does not apply. */
type Said = string | readonly [message: string, detail: string | undefined] | false | undefined;

const ROWS: readonly (readonly [QueuedCode, (it: Situation) => Said])[] = [
  // The task itself.
  ["RETRYING", retrying],
  [
    "SCHEDULED",
    ({ task, nowMs }) => task.runAtMs > nowMs && `it is to start at ${at(task.runAtMs)}`,
  ],

  // Its deployment.
  ["STOPPED", ({ isStopped }) => isStopped && "its deployment is stopped"],
  [
    "PAUSED",
    ({ paused }) =>
      paused && ["its endpoint is paused", `since ${at(paused.pausedAtMs)} by ${paused.pausedBy}`],
  ],
  ["ON_OTHER_NODES", elsewhere],
  ["SHUTTING_DOWN", ({ isDraining }) => isDraining && "its node is shutting down"],
  [
    "STORAGE_UNAVAILABLE",
    ({ storageAnswers }) => !storageAnswers && "the database refuses what its node writes",
  ],
  [
    "REVISION_FAILED",
    ({ failure }) => failure !== undefined && ["its deployment could not start", failure],
  ],
  ["PREPARING", preparing],
  [
    "ENDPOINT_MISSING",
    ({ serves, hasEndpoint, task }) =>
      serves && !hasEndpoint && `the revision that serves has no endpoint ${task.endpoint}`,
  ],

  // Its workers, while none is ready for it.
  [
    "WORKER_CRASHES",
    ({ workers, crash }) =>
      workers.ready === 0 && crash?.isLoop && ["its workers end again and again", crash.text],
  ],
  ["WORKER_STARTING", loading],
  [
    "NO_MATCHING_WORKER",
    ({ awaited, joinedFault, launch, workers }) =>
      workers.ready === 0 &&
      awaited !== undefined && [
        `no worker runs it: it waits for ${awaited}`,
        details(joinedFault && `the one that has joined cannot start it: ${joinedFault}`, launch),
      ],
  ],
  [
    "GPU_TAKEN",
    ({ workers, shortage, launch }) =>
      workers.ready === 0 &&
      shortage?.ofGpus && [
        "its worker waits for a GPU, which others have",
        details(shortage.text, launch),
      ],
  ],
  [
    "NO_ROOM",
    ({ workers, shortage, launch }) =>
      workers.ready === 0 &&
      shortage && ["its worker waits for room on the node", details(shortage.text, launch)],
  ],
  [
    "WORKER_CRASHES",
    ({ workers, crash }) =>
      workers.ready === 0 &&
      crash?.isPausing && [
        "its worker has ended, and another is started after a pause",
        crash.text,
      ],
  ],
  ["WORKER_STARTING", toStart],
  [
    "NO_WORKER_YET",
    ({ workers }) => workers.ready === 0 && "its deployment is at rest, and starts a worker for it",
  ],

  // The queue in front of them.
  ["WORKER_UNRESPONSIVE", ({ workers }) => workers.answering === 0 && unresponsive(workers)],
  [
    "ALONE",
    ({ task }) =>
      isSuspect(task) && "its worker ended with it, so it waits for one that it has to itself",
  ],
  ["BATCHING", ({ gathers }) => gathers && "it waits a moment for others to share a batch with"],
  [
    "KEY_LIMIT",
    ({ workers, perKey: { concurrency, rate } = {} }) =>
      workers.free > 0 &&
      concurrency !== undefined &&
      `its key may have ${count(concurrency, "task", "tasks")} running at a time${rate ? ` and start ${rateText(rate)}` : ""}, and waits for its turn`,
  ],
  [
    "KEY_RATE",
    ({ workers, perKey }) =>
      workers.free > 0 &&
      perKey?.rate !== undefined &&
      `it waits for the rate of its key, which may start ${rateText(perKey.rate)}`,
  ],
  ["STARTS_NOW", ({ workers }) => workers.free > 0 && "a worker is free, and takes it now"],
  ["DEPLOYMENT_LIMIT", atLimit],
  ["WORKERS_BUSY", busy],
];

/** Why a task is queued, by the first row that applies. */
export function queuedReason(task: QueuedTask, facts: QueuedFacts): QueuedReason {
  const it = { ...facts, task };
  for (const [code, say] of ROWS) {
    const said = say(it);
    if (said) {
      const [message, detail = ""] = typeof said === "string" ? [said] : said;
      return { code, message, ...(detail !== "" && { detail: cut(detail) }) };
    }
  }
  throw new Error("the last row always says why a task is queued");
}

/** The sentence for those who see the deployment, or for any caller. */
export function sentenceOf({ message, detail }: QueuedReason, seesDeployment: boolean): string {
  return seesDeployment && detail !== undefined ? `${message}: ${detail}` : message;
}

/** Whether it is about this node's own workers, so that those of other nodes may tell another. */
export function isOfThisNode({ code }: QueuedReason): boolean {
  return OF_THIS_NODE.has(code);
}

/** Whether a launcher may bring what is missing. */
export function isForLaunchers({ code }: QueuedReason): boolean {
  return FOR_LAUNCHERS.has(code);
}

const FOR_LAUNCHERS: ReadonlySet<QueuedCode> = new Set([
  "NO_MATCHING_WORKER",
  "GPU_TAKEN",
  "NO_ROOM",
]);

const OF_THIS_NODE: ReadonlySet<QueuedCode> = new Set([
  ...(["SHUTTING_DOWN", "REVISION_FAILED", "PREPARING", "NO_MATCHING_WORKER"] as const),
  ...(["WORKER_STARTING", "WORKER_CRASHES", "GPU_TAKEN", "NO_ROOM", "NO_WORKER_YET"] as const),
]);

function retrying({ task, nowMs }: Situation): Said {
  const last = task.returned.at(-1);
  return (
    task.runAtMs > nowMs &&
    last?.retryAtMs !== undefined &&
    `attempt ${last.number} did not succeed, and the next begins at ${at(task.runAtMs)}`
  );
}

/** Where this node has none, and others have. */
function elsewhere({ readyElsewhere = 0, position }: Situation): Said {
  return (
    readyElsewhere > 0 &&
    `its workers are on other nodes, where ${count(readyElsewhere, "is", "are")} ready${before(position)}`
  );
}

function preparing({ serves, preparing: step }: Situation): Said {
  return !serves && step !== undefined && ["what its worker needs is being prepared", step];
}

function loading({ workers, nowMs, crash }: Situation): Said {
  const { ready, startingSinceMs: sinceMs } = workers;
  return (
    ready === 0 &&
    sinceMs !== undefined && [
      `a worker is starting, for ${duration(nowMs - sinceMs)} so far`,
      crash && `the one before ended: ${crash.text}`,
    ]
  );
}

function toStart({ workers: { ready, wanted }, serves }: Situation): Said {
  if (ready > 0) {
    return undefined;
  }
  return serves
    ? wanted > 0 && "its worker is about to start: a node starts a few at a time"
    : "its deployment is starting";
}

function unresponsive({ ready }: EndpointWorkers): string {
  return ready === 1
    ? "its worker does not answer at the moment, or says that it is not ready"
    : `none of its ${ready} workers answers at the moment, or each says that it is not ready`;
}

function atLimit({ workers: { ready, wanted }, limit = Infinity, position }: Situation): Said {
  const who = ready === 1 ? "its one worker is" : `all its ${ready} workers are`;
  return (
    Math.min(ready, wanted) >= limit &&
    `${who} busy, and its deployment may have no more${before(position)}`
  );
}

function busy({ workers: { ready, startingSinceMs }, shortage, crash, position }: Situation): Said {
  const more =
    startingSinceMs !== undefined
      ? ", and another is starting"
      : shortage !== undefined
        ? `, and another waits for ${shortage.ofGpus ? "a GPU" : "room on the node"}`
        : "";
  const who = ready === 1 ? "its worker is busy" : `all its ${ready} workers are busy`;
  return [
    `${who}${more}${before(position)}`,
    crash?.isLoop ? `others end: ${crash.text}` : shortage?.text,
  ];
}

/** True where it may have ended its worker, so that it runs again with no other beside it. */
function isSuspect({ returned }: QueuedTask): boolean {
  const ended = returned.findLast(({ failure }) => !NOBODYS_FAULT.has(failure.reason));
  return ended !== undefined && ENDED_WORKER.has(ended.failure.reason);
}

const NOBODYS_FAULT: ReadonlySet<FailureReason> = new Set(["interrupted", "node_lost"]);
const ENDED_WORKER: ReadonlySet<FailureReason> = new Set(["worker_lost", "out_of_memory"]);

function before(position: number | undefined): string {
  switch (position) {
    case undefined:
      return "";
    case 0:
      return "; it is the next";
    case MAX_POSITION:
      return `; ${MAX_POSITION.toLocaleString("en")} tasks or more are before it`;
    default:
      return `; ${position === 1 ? "1 task is" : `${position} tasks are`} before it`;
  }
}

function at(timeMs: number): string {
  return new Date(timeMs)
    .toISOString()
    .replace("T", " ")
    .replace(/\.\d+Z$/, "Z");
}

function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  return seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`;
}

const PERIODS = new Map([
  [1_000, "a second"],
  [60_000, "a minute"],
  [3_600_000, "an hour"],
  [86_400_000, "a day"],
]);

function rateText({ count: number, periodMs }: RateManifest): string {
  return `${number} ${PERIODS.get(periodMs) ?? `in ${formatDuration(periodMs)}`}`;
}

const count = (number: number, one: string, more: string): string =>
  `${number} ${number === 1 ? one : more}`;

function details(...texts: readonly (string | undefined)[]): string {
  return texts.filter((text) => text !== undefined).join("; ");
}

function cut(text: string): string {
  return text.length > MAX_DETAIL_CHARACTERS ? `${text.slice(0, MAX_DETAIL_CHARACTERS)}…` : text;
}
