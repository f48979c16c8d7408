/** Asks the nodes what became of each task, over HTTP, and judges it. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Answer, ask, isDefinite, parsed } from "./client.ts";
import { type HistoryEvent, type Violation, violations } from "./history.ts";
import type { Ledger } from "./ledger.ts";
import type { Submitted } from "./load.ts";

const AT_ONCE = 16;
const AGAIN_MS = 100;

/** A task that has not ended so long after the last fault counts as lost. */
const SETTLE_MS = 60_000;

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
  const events = ended ? eventsOf((await read(task, witness, "events")).text) : [];
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
  return { status: shown?.status ?? "missing", broken };
}

/** Asks until there is a definite answer about a task that has ended, or the time is over. */
async function read(
  { endpoint, taskId }: Submitted,
  { origin, headers, untilMs }: Witness,
  ...[what, waitSeconds = 0]: [what: "get" | "status" | "events", waitSeconds?: number]
): Promise<Answer> {
  const wait = waitSeconds > 0 ? `&wait=${waitSeconds}` : "";
  const url = `${origin}/${endpoint}/${what}?task_id=${taskId}${wait}`;
  for (;;) {
    const answer = await ask(url, { headers, waitSeconds });
    const over = performance.now() > untilMs;
    if (isDefinite(answer) && (over || !answer.text.includes("TASK_NOT_FINISHED"))) {
      return answer;
    }
    if (over) {
      return answer ?? { status: 0, text: "no answer" };
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
