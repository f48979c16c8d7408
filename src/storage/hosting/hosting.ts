/**
 * The hosting port: the desired revision of every deployment, its files,
 * secrets, schedules, logs, webhooks, alerts, usage and budgets, the reports of the nodes that run
 * it, and which machines are drained.
 *
 * It keeps the promises of the accounts port. Deployments themselves are
 * created, changed and deleted there; a change to one here also writes its
 * audit event and its change event.
 *
 * Deleting a deployment removes it, its secrets and its schedules at once and leaves a
 * tombstone. By the tombstone, `pruneHosting` finds the rest and deletes it in
 * small pieces, and `pruneDeleted` of the storage port deletes its tasks. The
 * tombstone stays for an hour, because a node that has not noticed yet may go
 * on writing: those writes are deleted at the end of the hour.
 */
import type { AlertStorage } from "./alerts.ts";
import type { BudgetStorage } from "./budgets.ts";
import type { ArtifactFiles } from "./files.ts";
import type { LauncherStorage } from "./launchers.ts";
import type { Logs } from "./logs.ts";
import type { MachineStorage } from "./machines.ts";
import type { ManifestStorage } from "./manifests.ts";
import type { ModelStorage } from "./models.ts";
import type { NodeStorage } from "./nodes.ts";
import type { Revisions } from "./revisions.ts";
import type { ScheduleStorage } from "./schedules.ts";
import type { SecretStorage } from "./secrets.ts";
import type { UsageStorage } from "./usage.ts";
import type { WebhookStorage } from "./webhooks.ts";

export interface HostingStorage
  extends Revisions,
    SecretStorage,
    ScheduleStorage,
    ArtifactFiles,
    NodeStorage,
    LauncherStorage,
    MachineStorage,
    ManifestStorage,
    Logs,
    ModelStorage,
    WebhookStorage,
    AlertStorage,
    UsageStorage,
    BudgetStorage {
  /**
   * Deletes the remains of deleted deployments, and nodes that died long ago:
   * at most `limit` rows of each kind. Returns how many it deleted; 0 when
   * nothing is left.
   */
  pruneHosting(parameters: { readonly nowMs: number; readonly limit: number }): Promise<number>;
}
