/** A queue with real workers over a storage that fails, and the callers that use it. */
import { fileURLToPath } from "node:url";
import { pino } from "pino";
import { bundleService } from "../../../src/artifacts/bundle.ts";
import { Deployment } from "../../../src/deployments/deployment.ts";
import { toProblem } from "../../../src/errors.ts";
import { Maintenance } from "../../../src/queue/maintenance/maintenance.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { eventLog } from "../../../src/tasks/event.ts";
import { createIdSource } from "../../../src/tasks/id.ts";
import type { TaskHistory } from "../../chaos/history.ts";
import type { Ledger } from "../../chaos/ledger.ts";
import { localFiles } from "../../storage/files/local.ts";

const SERVICE = fileURLToPath(new URL("../../chaos/service.ts", import.meta.url));

const LOG = pino({ level: "silent" });

export function maintenanceOver(storage: Storage): Maintenance {
  return new Maintenance({ storage, notifier: undefined, log: LOG, now: Date.now });
}

/** Serves the functions of chaos over this storage, which works until they are loaded. */
export async function host(storage: Storage, maintenance: Maintenance): Promise<Deployment> {
  await maintenance.start();
  const hosted = new Deployment({
    organization: "local",
    notifier: undefined,
    storage,
    maintenance,
    log: LOG,
    newId: createIdSource(),
    nodeId: "node",
    now: Date.now,
    workers: 2,
    graceMs: 200,
    readyTimeoutMs: 30_000,
    maxResultBytes: 1_000_000,
    maxFileBytes: 1_000_000,
    files: localFiles(),
    maxWaiting: 1_000,
    onReadiness: () => {},
  });
  await hosted.deploy(await bundleService(SERVICE));
  return hosted;
}

/** The reason that a call was refused for; what is not from the catalogue is thrown. */
export function reasonOf(err: unknown): string {
  const { reason } = toProblem(err);
  if (reason === "INTERNAL") {
    throw err;
  }
  return reason;
}

/** What the callers of one run were told. */
export interface Told {
  /** The tasks that were acknowledged, and what with. */
  readonly acknowledged: Map<string, number>;
  /** Acknowledged to be cancelled. */
  readonly cancelled: Set<string>;
  /** Numbers whose submit failed for good: it is not known whether there is a task. */
  readonly uncertain: Set<number>;
  /** What callers saw that cannot be. */
  readonly wrong: string[];
}

/** Everything that is known of a task. */
export async function historyOf(
  storage: Storage,
  key: { readonly deploymentId: string; readonly taskId: string },
  { told, ledger }: { readonly told: Told; readonly ledger: Ledger },
): Promise<TaskHistory> {
  const found = await storage.getHistory({ ...key, afterSequence: 0, limit: 1_000 });
  const result = await storage.getResult(key);
  return {
    taskId: key.taskId,
    number: told.acknowledged.get(key.taskId) ?? Number.NaN,
    status: found?.task.status,
    attempt: found?.task.attempt ?? 0,
    events: (found ? eventLog(found, 0) : []).map(({ sequence, attempt, body }) => ({
      sequence,
      attempt,
      status: body.kind === "state" ? body.status : undefined,
    })),
    result: result && JSON.parse(result.json),
    runs: ledger.runs(key.taskId),
    cancelled: told.cancelled.has(key.taskId),
  };
}
