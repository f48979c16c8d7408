/**
 * Rounds of load and failovers: the primary is killed, its standby promoted, and the killed server
 * brought back as the standby, while callers submit to two nodes that know both addresses. Then
 * each acknowledged task is judged.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Violation } from "./history.ts";
import { Ledger } from "./ledger.ts";
import { Load } from "./load.ts";
import { ChaosNode, serving } from "./node.ts";
import { PostgresPair } from "./pair.ts";
import { storedWrongly } from "./postgres.ts";
import { Random } from "./random.ts";
import { verify } from "./verify.ts";
import { within } from "./within.ts";

const NODES = 2;
/** Load before the primary is killed. */
const MIN_LOAD_MS = 1_000;
const MAX_LOAD_MS = 3_000;
/** From the return of the standby to the end of a task. */
const MAX_RECOVERY_MS = 90_000;
/** For the callers to finish what they have begun. */
const PAUSE_TIMEOUT_MS = 120_000;

export interface FailoverFigures {
  rounds: number;
  submitted: number;
  acknowledged: number;
  readonly finished: Record<string, number>;
  lost: number;
  /** Everything else that is not as promised. */
  wrong: number;
  /** The longest from the kill to the end of a task that was submitted after the promotion. */
  slowestServiceMs: number;
  readonly violations: string[];
}

export interface FailoverOptions {
  readonly rounds: number;
  readonly seed: number;
  /** Told after each round. */
  onRound(figures: FailoverFigures): void;
}

export async function failovers({
  rounds,
  seed,
  onRound,
}: FailoverOptions): Promise<FailoverFigures> {
  const random = new Random(seed);
  await using stack = new AsyncDisposableStack();
  const ledger = stack.use(await Ledger.start());
  const pair = stack.use(await PostgresPair.start());
  const nodes: ChaosNode[] = [];
  for (let index = 0; index < NODES; index += 1) {
    nodes.push(stack.use(await ChaosNode.create(serving(pair.url))));
  }
  for (const node of nodes) {
    node.spawn();
  }
  await Promise.all(nodes.map((node) => node.ready()));
  const origins = nodes.map(({ origin }) => origin);
  const found: Violation[] = [];
  const onViolation = (violation: Violation): void => void found.push(violation);
  const load = new Load({ origins, ledgerUrl: ledger.url, random, onViolation });
  const figures: FailoverFigures = {
    rounds: 0,
    submitted: 0,
    acknowledged: 0,
    finished: {},
    lost: 0,
    wrong: 0,
    slowestServiceMs: 0,
    violations: [],
  };
  while (figures.rounds < rounds) {
    load.resume();
    await sleep(random.between(MIN_LOAD_MS, MAX_LOAD_MS));
    const killedMs = performance.now();
    await pair.killPrimary();
    await pair.promote();
    await pair.rejoin();
    await load.probe(MAX_RECOVERY_MS);
    const serviceMs = performance.now() - killedMs;
    figures.slowestServiceMs = Math.max(figures.slowestServiceMs, serviceMs);
    const tasks = await within(PAUSE_TIMEOUT_MS, "the last call of a round", load.pause());
    const verified = await verify(tasks, { origins, ledger });
    found.push(...verified.violations);
    for (const [status, count] of verified.ends) {
      figures.finished[status] = (figures.finished[status] ?? 0) + count;
    }
    for (const { taskId } of tasks) {
      ledger.forget(taskId);
    }
    figures.acknowledged += tasks.length;
    const wrong = await storedWrongly([pair.primaryUrl], figures.acknowledged);
    const crashes = nodes.flatMap((node) => node.takeCrashes());
    for (const message of [...wrong, ...crashes.map((text) => `a node ended by itself: ${text}`)]) {
      found.push({ kind: "wrong", taskId: "-", message });
    }
    figures.rounds += 1;
    figures.submitted = load.submitted;
    judge(figures, found.splice(0));
    onRound(figures);
  }
  return figures;
}

function judge(figures: FailoverFigures, violations: readonly Violation[]): void {
  const lost = new Set(violations.flatMap(({ kind, taskId }) => (kind === "lost" ? [taskId] : [])));
  figures.lost += lost.size;
  figures.wrong += violations.filter(({ kind }) => kind !== "lost").length;
  figures.violations.push(...violations.map(({ taskId, message }) => `${taskId}: ${message}`));
}
