/** Machines: which are drained, and the workers of an organization on all of them. */
import type { AuditAction } from "../../accounts/audit.ts";
import type { HostingStorage } from "../../hosting/hosting.ts";
import type { DrainedMachine, MachineKey } from "../../hosting/machines.ts";
import type { NodeWorkers } from "../../hosting/nodes.ts";
import { record, recordEverywhere } from "../accounts/audit.ts";
import { announce } from "../accounts/changes.ts";
import { type Operation, query } from "../operation.ts";

/** Stands for an organization where a machine of nodes is drained. */
const NODES = "";

export function* drainMachine({
  organizationId,
  machine,
  limit,
  ...deed
}: Parameters<HostingStorage["drainMachine"]>[0]): Operation<
  Awaited<ReturnType<HostingStorage["drainMachine"]>>
> {
  const [counted] = yield* query<{ machines: number }>(
    `SELECT CAST(count(*) AS integer) AS machines FROM drained_machines
     WHERE organization_id = ? AND machine <> ?`,
    organizationId ?? NODES,
    machine,
  );
  if ((counted?.machines ?? 0) >= limit) {
    return { outcome: "limit" };
  }
  const added = yield* query(
    `INSERT INTO drained_machines (organization_id, machine, drained_at_ms, drained_by)
     VALUES (?, ?, ?, ?) ON CONFLICT (organization_id, machine) DO NOTHING RETURNING machine`,
    organizationId ?? NODES,
    machine,
    deed.nowMs,
    deed.by.name,
  );
  if (added.length > 0) {
    yield* noteChange(deed, {
      ...{ organizationId, machine },
      action: organizationId === undefined ? "node.drain" : "machine.drain",
    });
  }
  return { outcome: "drained" };
}

export function* resumeMachine({
  organizationId,
  machine,
  ...deed
}: Parameters<HostingStorage["resumeMachine"]>[0]): Operation<void> {
  const deleted = yield* query(
    "DELETE FROM drained_machines WHERE organization_id = ? AND machine = ? RETURNING machine",
    organizationId ?? NODES,
    machine,
  );
  if (deleted.length > 0) {
    yield* noteChange(deed, {
      ...{ organizationId, machine },
      action: organizationId === undefined ? "node.resume" : "machine.resume",
    });
  }
}

/** Of nodes, every organization is told, and the nodes see it with their next heartbeat. */
function* noteChange(
  deed: Parameters<typeof record>[0],
  { organizationId, machine, action }: MachineKey & { readonly action: AuditAction },
): Operation<void> {
  const entry = { action, subjectId: machine, subject: machine };
  if (organizationId === undefined) {
    yield* recordEverywhere(deed, entry);
    return;
  }
  yield* record(deed, organizationId, entry);
  yield* announce(deed.nowMs, { kind: "organization", id: organizationId });
}

export function* listDrained({
  organizationId,
}: Parameters<HostingStorage["listDrained"]>[0]): Operation<DrainedMachine[]> {
  const rows = yield* query<{
    readonly machine: string;
    readonly drained_at_ms: number;
    readonly drained_by: string;
  }>(
    `SELECT machine, drained_at_ms, drained_by FROM drained_machines
     WHERE organization_id = ? ORDER BY machine`,
    organizationId ?? NODES,
  );
  return rows.map((row) => ({
    machine: row.machine,
    drainedAtMs: row.drained_at_ms,
    drainedBy: row.drained_by,
  }));
}

export function* listAllWorkers({
  organizationId,
  nowMs,
}: Parameters<HostingStorage["listAllWorkers"]>[0]): Operation<
  Awaited<ReturnType<HostingStorage["listAllWorkers"]>>
> {
  const rows = yield* query<{
    readonly node_id: string;
    readonly machine: string | null;
    readonly deployment_id: string;
    readonly name: string;
    readonly running: string;
  }>(
    `SELECT r.node_id, n.machine, r.deployment_id, d.name, r.running
     FROM deployment_reports r
     JOIN nodes n ON n.node_id = r.node_id || ''
     JOIN deployments d ON d.organization_id = r.organization_id
       AND d.deployment_id = r.deployment_id
     WHERE r.organization_id = ? AND r.running IS NOT NULL AND n.expires_at_ms > ?
     ORDER BY r.node_id, r.deployment_id`,
    organizationId,
    nowMs,
  );
  return rows.map((row) => ({
    ...(JSON.parse(row.running) as NodeWorkers),
    nodeId: row.node_id,
    nodeMachine: row.machine ?? "",
    deploymentId: row.deployment_id,
    deployment: row.name,
  }));
}
