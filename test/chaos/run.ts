/**
 * Rounds of load and kills on one database. In a round callers submit tasks
 * while nodes and workers die; then everything may settle, each task is
 * judged, every node is killed once more, and the database is examined with
 * nobody on it.
 */
import type { Violation } from "./history.ts";
import { Killer, type OtherFaults } from "./kill.ts";
import { LaunchedPlatform } from "./launched.ts";
import { Ledger } from "./ledger.ts";
import { Load } from "./load.ts";
import { ChaosNode, serving } from "./node.ts";
import { Random } from "./random.ts";
import { verify } from "./verify.ts";
import { within } from "./within.ts";

/** For the callers to finish what they have begun. */
const PAUSE_TIMEOUT_MS = 120_000;
const CHECK_TIMEOUT_MS = 300_000;
/** Nothing more is killed in a round after it: the round is judged with fewer kills. */
const MAX_ROUND_SECONDS = 1_200;

/** A database that outlives its nodes, and what else can happen to it. */
export interface ChaosDatabase extends AsyncDisposable {
  readonly name: string;
  /** What each node is given as `--database`; one node for each. */
  readonly urls: readonly string[];
  /** Those of a platform that is set up already. Default: none. */
  readonly nodes?: readonly ChaosNode[];
  /** Of each call. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** What is wrong with it, when nothing is under way and so many tasks were acknowledged. */
  check(acknowledged: number): Promise<readonly string[]>;
  readonly other?: OtherFaults;
  /** Told how long a task took that has ended, from its submit to its result, without its own time. */
  onEnd?(taskId: string, tookMs: number): void;
  /** Further rows of the table of figures. */
  rows?(): readonly (readonly [string, string])[];
}

export interface ChaosOptions {
  readonly database: ChaosDatabase;
  readonly kills: number;
  readonly killsPerRound: number;
  /** No new round begins after it. */
  readonly seconds: number;
  readonly seed: number;
  /** Workers run on machines that a launcher starts; the database is one file. */
  readonly launcher: boolean;
  /** Told after each round. */
  onRound(figures: Figures): void;
  /** Told of a fault that tasks have waited for a long time after. */
  onSlow(fault: string, afterMs: number): void;
}

export interface Figures {
  rounds: number;
  seconds: number;
  /** Calls that were made. */
  submitted: number;
  acknowledged: number;
  /** In each final state. */
  readonly finished: Record<string, number>;
  lost: number;
  endedTwice: number;
  /** Everything else that is not as promised. */
  wrong: number;
  /** How many processes were killed, by what they were. */
  killed: Killer["killed"];
  otherFaults: number;
  slowestServiceMs: number;
  slowestRestartMs: number;
  readonly violations: string[];
}

export async function chaos(options: ChaosOptions): Promise<Figures> {
  const { database, killsPerRound } = options;
  const random = new Random(options.seed);
  const begunMs = performance.now();
  await using stack = new AsyncDisposableStack();
  const ledger = stack.use(await Ledger.start());
  const nodes: ChaosNode[] = [...(database.nodes ?? [])];
  let launched: LaunchedPlatform | undefined;
  for (const url of database.urls) {
    if (options.launcher) {
      launched = stack.use(await LaunchedPlatform.start(url, { random, ledger }));
    }
    nodes.push(launched?.node ?? stack.use(await ChaosNode.create(serving(url))));
  }
  const { headers = {} } = launched ?? database;
  const origins = nodes.map(({ origin }) => origin);
  const found: Violation[] = [];
  const onViolation = (violation: Violation): void => void found.push(violation);
  const load = new Load({
    origins,
    headers,
    ledgerUrl: ledger.url,
    random,
    onViolation,
    onEnd: (taskId, tookMs) => database.onEnd?.(taskId, tookMs),
  });
  const { other } = launched ?? database;
  const { onSlow } = options;
  const killer = new Killer({ nodes, ledger, load, random, onSlow, ...(other && { other }) });
  const elapsed = (): number => (performance.now() - begunMs) / 1_000;
  const figures: Figures = {
    rounds: 0,
    seconds: 0,
    submitted: 0,
    acknowledged: 0,
    finished: {},
    lost: 0,
    endedTwice: 0,
    wrong: 0,
    killed: {},
    otherFaults: 0,
    slowestServiceMs: 0,
    slowestRestartMs: 0,
    violations: [],
  };
  do {
    await start(nodes);
    load.resume();
    const until = Math.min(options.kills, killer.kills + killsPerRound);
    const overAt = elapsed() + MAX_ROUND_SECONDS;
    while (killer.kills < until && elapsed() < overAt) {
      await killer.strike();
    }
    const tasks = await within(PAUSE_TIMEOUT_MS, "the last call of a round", load.pause());
    const verified = await verify(tasks, { origins, headers, ledger });
    killer.measureRestarts();
    for (const { taskId } of tasks) {
      ledger.forget(taskId);
    }
    found.push(...verified.violations);
    for (const [status, count] of verified.ends) {
      figures.finished[status] = (figures.finished[status] ?? 0) + count;
    }
    await Promise.all(nodes.map((node) => node.kill()));
    killer.counts.nodes += nodes.length;
    figures.acknowledged += tasks.length;
    const checked = database.check(figures.acknowledged);
    for (const message of await within(CHECK_TIMEOUT_MS, "the check of the database", checked)) {
      found.push({ kind: "wrong", taskId: "-", message });
    }
    const crashes = [...nodes, ...(launched ? [launched] : [])];
    for (const output of crashes.flatMap((each) => each.takeCrashes())) {
      found.push({ kind: "wrong", taskId: "-", message: `a node ended by itself:\n${output}` });
    }
    figures.rounds += 1;
    figures.seconds = elapsed();
    figures.submitted = load.submitted;
    figures.killed = killer.killed;
    figures.otherFaults = killer.counts.other;
    figures.slowestServiceMs = killer.slowestServiceMs;
    figures.slowestRestartMs = killer.slowestRestartMs;
    count(figures, found.splice(0));
    options.onRound(figures);
  } while (killer.kills < options.kills && figures.seconds < options.seconds);
  return figures;
}

async function start(nodes: readonly ChaosNode[]): Promise<void> {
  for (const node of nodes) {
    node.spawn();
  }
  await Promise.all(nodes.map((node) => node.ready()));
}

function count(figures: Figures, violations: readonly Violation[]): void {
  const of = (kind: Violation["kind"]): number =>
    new Set(violations.flatMap((each) => (each.kind === kind ? [each.taskId] : []))).size;
  figures.lost += of("lost");
  figures.endedTwice += of("ended twice");
  figures.wrong += of("wrong");
  figures.violations.push(...violations.map(({ taskId, message }) => `${taskId}: ${message}`));
}
