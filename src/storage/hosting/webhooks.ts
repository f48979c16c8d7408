/**
 * The part of the hosting port for webhooks: addresses that are told how tasks end, and the outbox
 * of what they are told. Receivers of alerts (`alerts.ts`) are webhooks of no deployment: where a
 * deployment is named, they have the id of their organization.
 *
 * Every way in which a task ends (`endAttempts`, `cancelTask`, `expireTasks`, and the leases that
 * are lost) writes, in its own transaction, one delivery for each webhook of the deployment that
 * wants that end. A node then takes deliveries for a time (a lease), sends them, and records the
 * answer under its claim (the fence). A node that dies loses nothing: its deliveries are due again
 * when their time is over, under the same id.
 */
import type { Deed } from "../accounts/deed.ts";
import type { Page, PageQuery } from "../accounts/page.ts";
import type { AlertTransition } from "./alerts.ts";
import type { DeploymentKey } from "./deployment-key.ts";

/** How a task may end, of which a webhook is told. */
export type TaskEnd = "success" | "failure" | "cancelled";

/** How one is told; of a deployment, all are `webhook`. */
export type ReceiverKind = "webhook" | "mail" | "slack";

/** What its owner says of a webhook. */
export interface WebhookSettings {
  readonly url: string;
  /** The ends that it hears of; at least one. */
  readonly ends: readonly TaskEnd[];
  /** The one endpoint whose tasks it hears of; empty: all. */
  readonly endpoint: string;
  /** Whether it is told only of tasks whose submit has named it. */
  readonly namedOnly: boolean;
}

export interface WebhookRecord extends WebhookSettings {
  readonly name: string;
  readonly webhookId: string;
  readonly kind: ReceiverKind;
  readonly createdAtMs: number;
  readonly createdBy: string;
  /** Since when nothing is sent, and why; undefined while it is enabled. */
  readonly disabled: { readonly atMs: number; readonly reason: string } | undefined;
  /** Attempts that failed since one worked. */
  readonly failures: number;
  /** The breaker: nothing is sent before. */
  readonly pausedUntilMs: number;
  /** Until when what it is sent has the signature of the secret before, too; 0: it has not. */
  readonly rotatedUntilMs: number;
  /** Deliveries that wait, counted up to 1,000. */
  readonly waiting: number;
  /** Counts its updates; 1 at first. */
  readonly version: number;
}

/** A webhook whose latest attempt failed, with its deployment. */
export interface FailingWebhook {
  readonly deployment: { readonly deploymentId: string; readonly name: string };
  /** Whether calls of the deployment need a token. */
  readonly authorization: boolean;
  readonly webhook: WebhookRecord;
  /** What its newest failed attempt got; undefined where that delivery is gone. */
  readonly answer: DeliveryAnswer | undefined;
}

/** What an attempt to deliver got. */
export interface DeliveryAnswer {
  readonly atMs: number;
  readonly tookMs: number;
  /** The status of HTTP; 0 without an answer. */
  readonly status: number;
  /** How the body of the answer begins. */
  readonly text: string;
  /** Why there is no answer; empty where there is one. */
  readonly error: string;
}

/** What became of a delivery that was to be sent again: to a disabled webhook it is not. */
export type Redelivered =
  | { readonly outcome: "again"; readonly delivery: DeliveryRecord }
  | { readonly outcome: "disabled"; readonly name: string; readonly reason: string };

/** `waiting` for its next attempt, `delivered`, or given up. */
export type DeliveryState = "waiting" | "delivered" | "failed";

export interface DeliveryRecord {
  /** The same for every copy. */
  readonly deliveryId: string;
  readonly webhookId: string;
  /** The name of the webhook; empty when it is gone. */
  readonly webhook: string;
  /** Undefined for a test, and for alerts. */
  readonly end: TaskEnd | undefined;
  /** Undefined where it does not tell of alerts. */
  readonly alert: AlertTransition | undefined;
  /** Empty for a test, as `endpoint`. */
  readonly taskId: string;
  readonly endpoint: string;
  readonly createdAtMs: number;
  readonly state: DeliveryState;
  readonly attempts: number;
  /** When the next attempt is due; of use while it waits. */
  readonly nextAtMs: number;
  /** Of the latest attempts, oldest first. */
  readonly answers: readonly DeliveryAnswer[];
  /** What was sent; undefined before the first attempt, and in lists. */
  readonly body: string | undefined;
}

/** The task that a delivery tells of, as it ended. */
export interface EndedTask {
  readonly createdAtMs: number;
  readonly startedAtMs: number | undefined;
  readonly finishedAtMs: number;
  readonly attempt: number;
  readonly retryOf: string | undefined;
  /** As its row has them. */
  readonly tags: string | undefined;
  /** JSON text. */
  readonly failure: string | undefined;
  /** JSON text of a result that stands in its row. */
  readonly result: string | undefined;
  /** Bytes of a result that is elsewhere; undefined for one with files, or a part that is a blob. */
  readonly resultBytes: number | undefined;
}

/** A delivery for the node that has taken it. */
export interface TakenDelivery extends DeploymentKey {
  readonly organization: string;
  readonly deployment: string;
  readonly webhookId: string;
  readonly webhook: string;
  readonly kind: ReceiverKind;
  readonly url: string;
  /** The secrets, sealed; of Slack, the URL. */
  readonly sealed: string;
  readonly deliveryId: string;
  readonly end: TaskEnd | undefined;
  readonly taskId: string;
  readonly endpoint: string;
  readonly createdAtMs: number;
  readonly attempts: number;
  readonly answers: readonly DeliveryAnswer[];
  /** Undefined before the first attempt has been recorded. */
  readonly body: string | undefined;
  /** Undefined for a test and for alerts, where `body` is there, and for a task that was deleted. */
  readonly task: EndedTask | undefined;
}

export interface SealedWebhook extends DeploymentKey {
  readonly webhookId: string;
  readonly sealed: string;
}

interface WebhookKey extends DeploymentKey {
  readonly name: string;
}

export interface WebhookStorage {
  /** Registers a webhook. `sealed` are its secrets, sealed for `webhookId`. */
  createWebhook(
    parameters: Deed &
      WebhookKey &
      WebhookSettings & {
        readonly webhookId: string;
        /** Default: `webhook`. */
        readonly kind?: ReceiverKind;
        readonly sealed: string;
        /** Refused when the deployment has this many. */
        readonly limit: number;
      },
  ): Promise<
    | { readonly outcome: "created"; readonly webhook: WebhookRecord }
    | { readonly outcome: "name_taken" | "limit" | "not_found" }
  >;

  /** Lists the webhooks of a deployment, by name. */
  listWebhooks(parameters: DeploymentKey): Promise<WebhookRecord[]>;

  /** Lists webhooks of an organization's deployments whose latest attempt failed, by deployment and name. */
  listFailingWebhooks(parameters: {
    readonly organizationId: string;
    readonly limit: number;
  }): Promise<FailingWebhook[]>;

  /**
   * Changes what is given, of this version where one is. What waits goes to the new address; to
   * enable or disable one ends its pause, and forgets its failures.
   */
  updateWebhook(
    parameters: Deed &
      WebhookKey &
      Partial<WebhookSettings> & {
        readonly enabled?: boolean;
        readonly version?: number;
        /** The one that was read: another that has its name meanwhile is a conflict. */
        readonly webhookId?: string;
        /** In place of what is sealed; for Slack, whose URL that is. */
        readonly sealed?: string;
      },
  ): Promise<
    | { readonly outcome: "updated"; readonly webhook: WebhookRecord }
    | { readonly outcome: "not_found" | "version_conflict" }
  >;

  /** Deletes a webhook; what waits is not sent. False: no webhook has the name. */
  deleteWebhook(parameters: Deed & WebhookKey): Promise<boolean>;

  /** Reads the sealed secrets of a webhook. */
  getSealedWebhook(parameters: WebhookKey): Promise<SealedWebhook | undefined>;

  /** Replaces the secrets if they still are `from`; undefined where they are not, or it is gone. */
  rotateWebhook(
    parameters: Deed &
      WebhookKey & {
        readonly from: string;
        readonly to: string;
        readonly rotatedUntilMs: number;
      },
  ): Promise<WebhookRecord | undefined>;

  /** Lists the sealed secrets of all webhooks, for resealing after a key rotation. */
  listSealedWebhooks(parameters: PageQuery): Promise<Page<SealedWebhook>>;

  /** Replaces sealed secrets if they still are `from` (compare-and-swap). */
  replaceSealedWebhook(
    parameters: Omit<SealedWebhook, "sealed"> & { readonly from: string; readonly to: string },
  ): Promise<void>;

  /** Adds a test, which is due at once whatever the breaker says; undefined: no such webhook. */
  addTestDelivery(
    parameters: Deed & WebhookKey & { readonly deliveryId: string; readonly body: string },
  ): Promise<DeliveryRecord | undefined>;

  /** Has a delivery sent again from its first attempt; undefined where it or its webhook is gone. */
  redeliver(
    parameters: Deed & DeploymentKey & { readonly deliveryId: string },
  ): Promise<Redelivered | undefined>;

  /** Lists deliveries, newest first, of a webhook, of a task, or of all. */
  listDeliveries(
    parameters: DeploymentKey &
      PageQuery & {
        readonly webhook?: string;
        readonly taskId?: string;
        readonly state?: DeliveryState;
      },
  ): Promise<Page<DeliveryRecord>>;

  /** Reads one delivery, with what was sent. */
  getDelivery(
    parameters: DeploymentKey & { readonly deliveryId: string },
  ): Promise<DeliveryRecord | undefined>;

  /** Whether there is any webhook, or any delivery: without, nothing has to be looked for. */
  usesWebhooks(parameters: Record<never, never>): Promise<boolean>;

  /**
   * Takes deliveries that are due, for `ttlMs`: of each webhook at most `perWebhook`, and one only
   * while its last attempts have failed. None of disabled webhooks, of those whose pause is not
   * over, nor of those named.
   */
  takeDeliveries(parameters: {
    readonly claim: string;
    readonly nowMs: number;
    readonly ttlMs: number;
    readonly limit: number;
    readonly perWebhook: number;
    readonly withoutOrganizations: readonly string[];
    readonly withoutWebhooks: readonly string[];
  }): Promise<TakenDelivery[]>;

  /**
   * Records what an attempt got, and what was sent. False, and nothing changes, where the claim is
   * another's by now. A webhook that fails is paused for as long as `pausesMs` says.
   */
  recordDelivery(
    parameters: DeploymentKey & {
      readonly webhookId: string;
      readonly deliveryId: string;
      readonly claim: string;
      readonly nowMs: number;
      readonly state: DeliveryState;
      /** From now to the next attempt, in milliseconds. */
      readonly nextInMs: number;
      readonly answers: readonly DeliveryAnswer[];
      readonly body: string;
      /** The pause by how often it has failed in a row; empty: the attempt worked. */
      readonly pausesMs: readonly number[];
      /** The receiver wants no more of them. */
      readonly disable?: string;
    },
  ): Promise<boolean>;

  /**
   * Deletes at most `limit` deliveries from before `beforeMs`, the oldest first, and disables webhooks for
   * which more than `maxWaiting` wait, or than `maxWaitingFailed` while they fail. Answers how many it
   * deleted, and the time of the last one, at which the next prune may begin: so it does not pass again
   * what was deleted.
   */
  pruneDeliveries(parameters: {
    readonly nowMs: number;
    /** Older ones are not looked for. Default: all are. */
    readonly fromMs?: number | undefined;
    readonly beforeMs: number;
    readonly limit: number;
    readonly maxWaiting: number;
    readonly maxWaitingFailed: number;
  }): Promise<{ readonly deleted: number; readonly reachedMs: number }>;
}
