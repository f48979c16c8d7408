/** What a node counts, and how organizations and the operator read it. */
import { hostname } from "node:os";
import type { FastifyBaseLogger } from "fastify";
import { FederationService } from "../../gen/tessera/v1/federation_pb.js";
import { monitoredBy } from "../api/federation.ts";
import type { StartConfig, StartSecrets } from "../config/start.ts";
import { type Problem, toProblem } from "../errors.ts";
import type { Log } from "../log/log.ts";
import { Federation } from "../metrics/federation.ts";
import { ForeignMetrics } from "../metrics/foreign-samples.ts";
import { KeptHistory } from "../metrics/history/kept.ts";
import { Recorder } from "../metrics/history/recorder.ts";
import { measured } from "../metrics/measured-port.ts";
import { Metrics } from "../metrics/metrics.ts";
import { Publisher } from "../metrics/publish.ts";
import { Upstream } from "../metrics/upstream.ts";
import { monitoringPlugin } from "../server/monitoring/plugin.ts";
import type { ServerPlugin } from "../server/protocols.ts";
import type { HealthSource } from "../server/rpc/health.ts";
import type { Storage } from "../storage/storage.ts";
import { CellAway } from "../storage/unavailable.ts";
import { Timer } from "../time/timer.ts";
import type { CellChange, NotifierState } from "./adapters.ts";

/** The metrics of this node; `port` tells it from others on the machine, 0 when it is not known yet. */
export function nodeMetrics(port: number, now: () => number): Metrics {
  return new Metrics({ node: port === 0 ? hostname() : `${hostname()}:${port}`, now });
}

/**
 * The storage, with the time that its operations take: as it tells itself, or else as seen from
 * outside. `onUnavailable` is called with the error of each operation that the database did not
 * answer, or had no room for; not with that of a cell.
 */
export function measuredStorage(
  storage: Storage,
  metrics: Metrics,
  onUnavailable: (found: Problem) => void,
): Storage {
  const blame = (err: unknown) => {
    const found = toProblem(err);
    if (found.reason !== "STORAGE_UNAVAILABLE") {
      return "error";
    }
    // A part of the tasks waits; the node goes on with the others.
    if (!(found.cause instanceof CellAway)) {
      onUnavailable(found);
    }
    return "unavailable";
  };
  const observer = metrics.storageObserver(blame);
  if (storage.observe === undefined) {
    return measured(storage, observer, ["accounts", "hosting"]);
  }
  storage.observe(observer);
  return storage;
}

/** Shows in metrics and in the log whether hints of other nodes arrive. */
export function reportNotifier(log: Log, metrics: Metrics): (state: NotifierState) => void {
  let deaf = false;
  return (state) => {
    metrics.notifierObserved(state === "up");
    if (state === "deaf" && !deaf) {
      log.warn(
        {},
        "notifications of the database do not arrive, so this node asks it every second instead: set DATABASE_DIRECT_URL to an address that leads to Postgres without a pooler",
      );
    } else if (state === "up" && deaf) {
      log.info({}, "notifications of the database arrive again");
    }
    deaf = state === "deaf" || (deaf && state === "lost");
  };
}

/** Shows in metrics and in the log which cells answer. */
export function reportCells(
  log: Log,
  metrics: Metrics,
): (cell: string, change: CellChange) => void {
  return (cell, change) => {
    if (change.state !== "restored") {
      metrics.cellObserved(cell, change.state === "up");
    }
    logCell(log, cell, change);
  };
}

function logCell(log: Log, cell: string, change: CellChange): void {
  switch (change.state) {
    case "up":
      log.info({ cell }, "a cell answers");
      break;
    case "away":
      log.error(
        { cell, reason: change.reason },
        "a cell is away: its tasks wait, and it takes no new ones",
      );
      break;
    case "refused":
      log.error({ cell, reason: change.reason }, "a cell cannot be used");
      break;
    case "restored":
      log.warn(
        { cell, requeued: change.requeued },
        "the data of a cell is older than it was: what it had under way begins anew",
      );
      break;
  }
}

interface StartMonitoringOptions {
  readonly config: Pick<StartConfig, "externalLabels">;
  readonly secrets: Pick<StartSecrets, "prometheusUrl">;
  readonly metrics: Metrics;
  /** Not measured: nodes that show each other their numbers should not change them by it. */
  readonly storage: Storage;
  readonly log: FastifyBaseLogger;
  readonly now: () => number;
  readonly isAlone: () => boolean;
  /** What is started here ends with them. */
  readonly resources: AsyncDisposableStack;
}

/** What organizations ask for their metrics. */
interface Monitoring {
  readonly federation: Federation;
  readonly history: KeptHistory;
}

/**
 * Begins to record what this node counts, and to show it to other nodes where there are others.
 */
export function startMonitoring(options: StartMonitoringOptions): Monitoring {
  return { federation: startFederation(options), history: startHistory(options) };
}

/** Interval at which metrics over time that are too old are deleted. */
const HISTORY_PRUNE_INTERVAL_MS = 60_000;

function startHistory({
  metrics,
  storage,
  log,
  now,
  resources,
}: StartMonitoringOptions): KeptHistory {
  const failed =
    (what: string) =>
    (err: unknown): void =>
      log.warn({ err }, `what this node has measured could not be ${what}`);
  const recorder = resources.use(
    new Recorder({ metrics, storage: storage.metrics, now, onError: failed("stored") }),
  );
  recorder.start();
  resources.use(
    new Timer(HISTORY_PRUNE_INTERVAL_MS, () => recorder.prune(), failed("deleted after its time")),
  );
  return new KeptHistory(storage.metrics);
}

function startFederation(options: StartMonitoringOptions): Federation {
  const { config, metrics, storage, log, now, isAlone, resources } = options;
  const { prometheusUrl } = options.secrets;
  const sharing = { storage: storage.metrics, nodeId: metrics.node, now, isAlone };
  if (storage.capabilities.shared) {
    const onError = (err: unknown): void =>
      log.warn({ err }, "the metrics of this node could not be shown to the others");
    resources.use(new Publisher({ ...sharing, metrics, onError })).start();
  }
  const onError = (err: unknown): void =>
    log.warn({ err }, "the metrics of another node cannot be read");
  return new Federation({
    metrics,
    now,
    externalLabels: config.externalLabels,
    ...(storage.capabilities.shared && { foreign: new ForeignMetrics({ ...sharing, onError }) }),
    ...(prometheusUrl !== undefined && { upstream: new Upstream(prometheusUrl) }),
  });
}

/** `/federate` and the node's `/metrics`. */
export function monitoring({
  metrics,
  federation,
  readiness,
  operatorToken,
}: {
  readonly metrics: Metrics;
  readonly federation: Federation;
  readonly readiness: HealthSource;
  readonly operatorToken: string | undefined;
}): ServerPlugin {
  return (app, { contextValues }) =>
    monitoringPlugin(app, {
      metrics,
      federation,
      contextValues: (req) => contextValues(req, FederationService.method.federate),
      monitored: monitoredBy,
      isReady: () => readiness.status("") === "SERVING",
      ...(operatorToken !== undefined && { operatorToken }),
    });
}
