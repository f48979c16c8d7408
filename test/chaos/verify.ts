/**
 * Asks the nodes what became of each task, over HTTP, and judges it. What is not as promised is told
 * with all that is known of its task: what the node says, the events, and the runs of its function.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Answer, ask, isDefinite, parsed, peek } from "./client.ts";
import { type HistoryEvent, type Violation, violations } from "./history.ts";
import type { Ledger } from "./ledger.ts";
import type { Submitted } from "./load.ts";

const AT_ONCE = 16;
const AGAIN_MS = 100;

/**
 * A task that has not ended so long after the last fault counts as lost. It is as long as a fault may
 * keep tasks waiting: a lease and the start of a node, or of a launcher and its machines.
 */
const SETTLE_MS = 180_000;
/** A node that is well answers one question sooner, however busy its machine is. */
const ANSWER_MS = 60_000;

export interface Verified {
  readonly violations: readonly Violation[];
  /** How many ended in each state. */
  readonly ends: ReadonlyMap<string, number>;
}

interface Witnesses {
  readonly origins: readonly string[];
  /** Of each call. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly ledger: Ledger;
}

export async function verify(
  tasks: readonly Submitted[],
  { origins, headers = {}, ledger }: Witnesses,
): Promise<Verified> {
  const untilMs = performance.now() + SETTLE_MS;
  const found: Violation[] = [];
  const ends = new Map<string, number>();
  const left = [...tasks];
  const line = async (origin: string): Promise<void> => {
    for (let task = left.pop(); task; task = left.pop()) {
      const witness = { origin, headers, ledger, untilMs };
      const { status, broken } = await judge(task, witness);
      ends.set(status, (ends.get(status) ?? 0) + 1);
      found.push(...broken);
    }
  };
  await Promise.all(
    Array.from({ length: AT_ONCE }, (_, index) => line(origins[index % origins.length] ?? "")),
  );
  return { violations: found, ends };
}

interface Witness {
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly ledger: Ledger;
  readonly untilMs: number;
}

async function judge(
  task: Submitted,
  witness: Witness,
): Promise<{ status: string; broken: Violation[] }> {
  const { taskId, number, cancelled } = task;
  const result = await read(task, witness, "get", 5);
  const status = await read(task, witness, "status");
  const shown = parsed(status.text) as { status?: string; attempt?: number } | undefined;
  const ended = ["success", "failure", "cancelled"].includes(shown?.status ?? "");
  // The stream of a task that has not ended does not end.
  const stream = ended
    ? (await read(task, witness, "events")).text
    : await peek(urlOf(task, witness, "events"), witness);
  const events = eventsOf(stream);
  const broken = violations({
    taskId,
    number,
    status: status.status === 404 ? undefined : (shown?.status ?? status.text),
    attempt: shown?.attempt ?? 0,
    events,
    result: parsed(result.text),
    runs: witness.ledger.runs(taskId),
    cancelled,
  });
  if (task.result !== undefined && task.result !== result.text) {
    const message = `its result was ${task.result} and is now ${result.text}`;
    broken.push({ kind: "ended twice", taskId, message });
  }
  const last = broken.pop();
  if (last) {
    const runs = witness.ledger.runs(taskId).map((run) => JSON.stringify(run));
    const known = [JSON.stringify(task), status.text, stream.trim(), ...runs].join("\n");
    broken.push({ ...last, message: `${last.message}\n${known.replaceAll(/^/gm, "    ")}` });
  }
  return { status: shown?.status ?? "missing", broken };
}

function urlOf(
  { endpoint, taskId }: Submitted,
  { origin }: Pick<Witness, "origin">,
  what: string,
): string {
  return `${origin}/${endpoint}/${what}?task_id=${taskId}`;
}

/**
 * Asks until there is a definite answer about a task that has ended, or the time to settle is over.
 * Rejects where there is no answer at all.
 */
async function read(
  task: Submitted,
  witness: Witness,
  ...[what, waitSeconds = 0]: [what: "get" | "status" | "events", waitSeconds?: number]
): Promise<Answer> {
  const { headers, untilMs } = witness;
  const wait = waitSeconds > 0 ? `&wait=${waitSeconds}` : "";
  const url = `${urlOf(task, witness, what)}${wait}`;
  const begunMs = performance.now();
  for (;;) {
    const answer = await ask(url, { headers, waitSeconds });
    const nowMs = performance.now();
    const isOver = nowMs > untilMs;
    if (isDefinite(answer) && (isOver || !answer.text.includes("TASK_NOT_FINISHED"))) {
      return answer;
    }
    if (isOver && nowMs > begunMs + ANSWER_MS) {
      throw new Error(`a node did not answer ${url}: ${answer?.text ?? "it said nothing"}`);
    }
    await sleep(AGAIN_MS);
  }
}

/** The events of a stream of Server-Sent Events. */
function eventsOf(stream: string): HistoryEvent[] {
  return [...stream.matchAll(/^data: (.*"sequence".*)$/gm)].map(([, json = ""]) => {
    const { sequence, attempt, state } = JSON.parse(json) as {
      readonly sequence: number;
      readonly attempt: number;
      readonly state?: { readonly status: string };
    };
    return { sequence, attempt, status: state?.status };
  });
}
