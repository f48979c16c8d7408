/**
 * The part of the hosting port for alerts: rules of an organization, what they have found, and the
 * messages to receivers, which are webhooks of no deployment (`webhooks.ts`) and use their outbox.
 *
 * A node takes the rules that are due, each for the time until it is due again, reads what they look
 * at, and records it under its claim. That one transaction decides what has fired and what has
 * cleared, and writes a delivery to each receiver: so each transition is told once, whatever node
 * evaluates, and wherever it dies.
 *
 * An alert is what a rule has found of one subject. It waits until it has been true for the rule's
 * hold time, fires, and clears when it has not been true for as long:
 *
 *     found -> waits -> fires -> (not found) -> clears
 *                |        ^            |
 *              gone       +-- found ---+
 */
import type { Deed } from "../accounts/deed.ts";
import type { Page, PageQuery } from "../accounts/page.ts";

/** What rules look at. */
export type AlertKind =
  | "oldest_task_waits"
  | "failures"
  | "deployment_degraded"
  | "worker_restarts"
  | "disk_free"
  | "token_ends"
  | "webhook_off"
  | "budget_used";

/** What receivers hear of. */
export type AlertTransition = "firing" | "cleared";

/** What its owner says of a rule. */
export interface AlertRuleSettings {
  /** Seconds, percent, times or days, by its kind. */
  readonly threshold: number;
  /** Names; empty: all. */
  readonly deployments: readonly string[];
  /** Names; empty: nobody is told. */
  readonly receivers: readonly string[];
  /** For how long it is true before it fires, and not before it clears. */
  readonly holdMs: number;
}

export interface AlertRuleRecord extends AlertRuleSettings {
  readonly name: string;
  readonly ruleId: string;
  readonly kind: AlertKind;
  /** In words. */
  readonly condition: string;
  readonly disabled: boolean;
  readonly silencedUntilMs: number;
  /** How many of its alerts fire. */
  readonly firing: number;
  /** How many of its alerts are pending: found, and not true for as long as it holds. */
  readonly pending: number;
  readonly evaluatedAtMs: number | undefined;
  readonly createdAtMs: number;
  readonly createdBy: string;
  /** 1 at first, and one more after each update; a silence does not change it. */
  readonly version: number;
}

export interface AlertRecord {
  readonly alertId: string;
  readonly rule: string;
  readonly kind: AlertKind;
  /** What it is about, for people. */
  readonly name: string;
  readonly text: string;
  readonly sinceMs: number;
  /** Undefined while it is pending. */
  readonly firedAtMs: number | undefined;
  /** Undefined while it fires or is pending. */
  readonly clearedAtMs: number | undefined;
}

/** What a rule has found of one subject. */
export interface Finding {
  /** The same as long as it is the same. */
  readonly subject: string;
  /** For people, such as `deployment ocr`. */
  readonly name: string;
  /** What is the matter, for people. */
  readonly text: string;
}

/** A rule for the node that has taken it. */
export interface TakenRule
  extends Pick<AlertRuleRecord, "ruleId" | "name" | "kind" | "threshold" | "deployments"> {
  readonly organizationId: string;
  readonly createdAtMs: number;
  /** When it was taken: what is read counts as of then. */
  readonly atMs: number;
}

/** What a message says besides what has fired. */
interface Telling {
  /** Where people reach the platform. */
  readonly platformUrl: string;
}

/** Names a rule, or a receiver. */
interface AlertKey {
  readonly organizationId: string;
  readonly name: string;
}

export interface AlertStorage {
  /** Makes a rule, which is due at once. */
  createAlertRule(
    parameters: Deed &
      AlertKey &
      AlertRuleSettings & {
        readonly ruleId: string;
        readonly kind: AlertKind;
        /** Refused when the organization has this many. */
        readonly limit: number;
      },
  ): Promise<
    | { readonly outcome: "created"; readonly rule: AlertRuleRecord }
    | { readonly outcome: "name_taken" | "limit" }
    | { readonly outcome: "receiver_unknown"; readonly receiver: string }
  >;

  /** Lists the rules of an organization, by name. */
  listAlertRules(parameters: { readonly organizationId: string }): Promise<AlertRuleRecord[]>;

  /**
   * Changes what is given, of this version where one is. What fires of a rule that is disabled
   * clears.
   */
  updateAlertRule(
    parameters: Deed &
      AlertKey &
      Telling &
      Partial<AlertRuleSettings> & {
        readonly enabled?: boolean;
        readonly silencedUntilMs?: number;
        readonly version?: number;
      },
  ): Promise<
    | { readonly outcome: "updated"; readonly rule: AlertRuleRecord }
    | { readonly outcome: "not_found" | "version_conflict" }
    | { readonly outcome: "receiver_unknown"; readonly receiver: string }
  >;

  /** Deletes a rule; what fires of it clears. False: no rule has the name. */
  deleteAlertRule(parameters: Deed & AlertKey & Telling): Promise<boolean>;

  /** Deletes a receiver that no rule tells. */
  deleteAlertReceiver(
    parameters: Deed & AlertKey,
  ): Promise<
    | { readonly outcome: "deleted" | "not_found" }
    | { readonly outcome: "in_use"; readonly rule: string }
  >;

  /** Lists what has fired, or what is pending, newest first. */
  listAlerts(
    parameters: PageQuery & {
      readonly organizationId: string;
      readonly rule?: string;
      /** Only what fires, or only what is pending. Default: all that fires or has fired. */
      readonly state?: "firing" | "pending" | undefined;
    },
  ): Promise<Page<AlertRecord>>;

  /** Whether there is any rule, or any alert: without, nothing has to be looked for. */
  usesAlerts(parameters: Record<never, never>): Promise<boolean>;

  /** Takes at most `limit` rules that are due; others may take them after `ttlMs`. */
  takeAlertRules(parameters: {
    readonly claim: string;
    readonly nowMs: number;
    readonly ttlMs: number;
    readonly limit: number;
  }): Promise<TakenRule[]>;

  /**
   * Records what a rule has found, decides what has fired and cleared, and writes the messages.
   * Undefined, and nothing changes, where the claim is another's by now. What is found beyond
   * `limit` is left out.
   */
  recordAlerts(
    parameters: Telling & {
      readonly organizationId: string;
      readonly ruleId: string;
      readonly claim: string;
      /** `atMs` of the rule. */
      readonly nowMs: number;
      readonly found: readonly Finding[];
      readonly limit: number;
      /** New, for the alerts that begin. */
      readonly newId: string;
    },
  ): Promise<{ readonly fired: number; readonly cleared: number } | undefined>;

  /** Lists tokens of the organization that end after one time and before another, soonest first. */
  listEndingTokens(parameters: {
    readonly organizationId: string;
    readonly afterMs: number;
    readonly beforeMs: number;
    readonly limit: number;
  }): Promise<{ tokenId: string; name: string; expiresAtMs: number }[]>;

  /** Lists webhooks and receivers of an organization that are disabled or paused. */
  listWebhooksOff(parameters: {
    readonly organizationId: string;
    readonly nowMs: number;
    readonly limit: number;
  }): Promise<
    {
      webhookId: string;
      name: string;
      /** The name of the deployment; empty for a receiver of alerts. */
      deployment: string;
      /** Why it is disabled; undefined while it is paused. */
      disabledReason: string | undefined;
    }[]
  >;

  /** Deletes at most `limit` alerts that have cleared before `beforeMs`. Returns how many. */
  pruneAlerts(parameters: { readonly beforeMs: number; readonly limit: number }): Promise<number>;
}

/** An alert in a message. */
interface ToldAlert {
  readonly id: string;
  readonly subject: string;
  readonly text: string;
  readonly since: string;
  readonly fired_at: string;
  readonly cleared_at?: string;
}

/** A message about alerts, as webhooks get it. */
export interface AlertMessage {
  readonly type: `alert.${AlertTransition | "test"}`;
  readonly timestamp: string;
  readonly data: {
    readonly organization: string;
    readonly rule: string;
    readonly kind: AlertKind | "";
    readonly condition: string;
    readonly alerts: readonly ToldAlert[];
    /** How many more there are. */
    readonly more: number;
    readonly url: string;
  };
}
