/** AlertService: rules of alerts, what has fired, and the receivers that are told. */
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { AlertRuleSchema, type AlertService } from "../../../gen/tessera/v1/alert_pb.js";
import { faultOfName } from "../../auth/names.ts";
import { operatorRequired } from "../../auth/permissions.ts";
import { problem } from "../../errors.ts";
import { deed, type Member, memberOf } from "../../server/rpc/engine/caller.ts";
import type { Organizations } from "../../storage/accounts/organizations.ts";
import type { AlertKind, AlertStorage } from "../../storage/hosting/alerts.ts";
import { findDeployment } from "../deployment/refusals.ts";
import { changedFields, changedMeanwhile, onlyDisables } from "../mask.ts";
import { PageTokens } from "../page.ts";
import { invalidField, missing, refuse, violationsOf } from "../violations.ts";
import { kindOf, toAlertMessage, toRuleMessage } from "./messages.ts";
import { type AlertReceiverOptions, receiverHandlers } from "./receivers.ts";
import { noReceiver, noRule } from "./refusals.ts";

/** Alert rules of an organization. */
const MAX_ALERT_RULES = 100;
/** How long a rule holds unless it says otherwise. */
const DEFAULT_ALERT_HOLD_MS = 120_000;
/** How long a silence lasts unless it says otherwise. */
const DEFAULT_SILENCE_MS = 3_600_000;

/** The bound of a rule that names none, in the unit of its kind. */
const DEFAULT_THRESHOLDS = {
  oldest_task_waits: 300,
  failures: 5,
  deployment_degraded: 0,
  worker_restarts: 3,
  disk_free: 10,
  token_ends: 7,
  webhook_off: 0,
  budget_used: 80,
} as const satisfies Record<AlertKind, number>;

/** The kinds whose bound is a share of all. */
const PERCENTAGES: ReadonlySet<AlertKind> = new Set(["failures", "disk_free", "budget_used"]);

const RULE_CHANGES = ["threshold", "deployments", "receivers", "hold", "disabled"] as const;

interface AlertServiceOptions extends AlertReceiverOptions {
  readonly accounts: Pick<Organizations, "findDeployment">;
  readonly hosting: AlertReceiverOptions["hosting"] & AlertStorage;
}

export function alertService(options: AlertServiceOptions): ServiceImpl<typeof AlertService> {
  return { ...ruleHandlers(options), ...receiverHandlers(options) };
}

type RuleMethods =
  | "createAlertRule"
  | "listAlertRules"
  | "updateAlertRule"
  | "deleteAlertRule"
  | "silenceAlertRule"
  | "listAlerts";

function ruleHandlers(
  options: AlertServiceOptions,
): Pick<ServiceImpl<typeof AlertService>, RuleMethods> {
  const { accounts, hosting, now, newId, publicUrl: platformUrl } = options;

  /** Throws DEPLOYMENT_NOT_FOUND: a rule of a name that does not exist would be silent for good. */
  const areThere = async (names: readonly string[], member: Member): Promise<void> => {
    for (const name of names) {
      await findDeployment(accounts, member, name);
    }
  };

  return {
    async createAlertRule({ rule = missing() }, ctx) {
      const member = memberOf(ctx);
      const { organizationId, by } = member;
      const { name, deployments, receivers, hold } = rule;
      const kind = kindOf(rule.kind);
      refuse(
        violationsOf({
          "rule.name": faultOfName(name),
          "rule.kind": kind === undefined ? "is missing: say what the rule looks at" : undefined,
        }),
      );
      const asked = kind ?? missing();
      if (asked === "disk_free") {
        checkOperator(member);
      }
      const threshold = thresholdOf(asked, rule.threshold);
      await areThere(deployments, member);
      const created = await hosting.createAlertRule({
        ...deed(by, options),
        ...{ organizationId, name, ruleId: newId(), kind: asked, threshold },
        ...{ deployments: unique(deployments), receivers: unique(receivers) },
        holdMs: hold === undefined ? DEFAULT_ALERT_HOLD_MS : durationMs(hold),
        limit: MAX_ALERT_RULES,
      });
      switch (created.outcome) {
        case "created":
          return toRuleMessage(created.rule, now());
        case "name_taken":
          throw problem(
            "ALERT_EXISTS",
            `there is an alert rule ${name}: change it, or choose another name`,
          );
        case "limit":
          throw problem(
            "LIMIT_REACHED",
            `the organization has ${MAX_ALERT_RULES} alert rules: delete one first`,
          );
        case "receiver_unknown":
          throw noReceiver(created.receiver);
      }
    },

    async listAlertRules(_req, ctx) {
      const { organizationId } = memberOf(ctx);
      const nowMs = now();
      const rules = await hosting.listAlertRules({ organizationId });
      return { rules: rules.map((one) => toRuleMessage(one, nowMs)) };
    },

    async updateAlertRule({ rule = missing(), updateMask: mask }, ctx) {
      const member = memberOf(ctx);
      const changed = changedFields(AlertRuleSchema, { message: rule, mask }, RULE_CHANGES);
      const { name, deployments, receivers, hold, disabled, version } = rule;
      const { organizationId, by } = member;
      const rules = await hosting.listAlertRules({ organizationId });
      const before = rules.find((one) => one.name === name) ?? noRule(name);
      if (before.kind === "disk_free" && !onlyDisables(changed, disabled)) {
        checkOperator(member);
      }
      if (changed.has("deployments")) {
        await areThere(deployments, member);
      }
      const updated = await hosting.updateAlertRule({
        ...deed(by, options),
        ...{ organizationId, name, platformUrl },
        ...(changed.has("threshold") && { threshold: thresholdOf(before.kind, rule.threshold) }),
        ...(changed.has("deployments") && { deployments: unique(deployments) }),
        ...(changed.has("receivers") && { receivers: unique(receivers) }),
        ...(changed.has("hold") && {
          holdMs: hold === undefined ? DEFAULT_ALERT_HOLD_MS : durationMs(hold),
        }),
        ...(changed.has("disabled") && { enabled: !disabled }),
        ...(version !== 0 && { version }),
      });
      return ruleOf(updated, name);
    },

    async deleteAlertRule({ name }, ctx) {
      const { organizationId, by } = memberOf(ctx);
      const gone = { ...deed(by, options), organizationId, name, platformUrl };
      if (!(await hosting.deleteAlertRule(gone))) {
        noRule(name);
      }
      return {};
    },

    async silenceAlertRule({ name, duration }, ctx) {
      const { organizationId, by } = memberOf(ctx);
      const forMs = duration === undefined ? DEFAULT_SILENCE_MS : durationMs(duration);
      const updated = await hosting.updateAlertRule({
        ...deed(by, options),
        ...{ organizationId, name, platformUrl },
        silencedUntilMs: forMs === 0 ? 0 : now() + forMs,
      });
      return ruleOf(updated, name);
    },

    async listAlerts(req, ctx) {
      const { organizationId } = memberOf(ctx);
      const { rule, firing, pending } = req;
      if (firing && pending) {
        throw invalidField(
          "pending",
          "cannot be together with `firing`: an alert fires or is pending",
        );
      }
      const state = firing ? "firing" : pending ? "pending" : undefined;
      const tokens = new PageTokens({
        method: "ListAlerts",
        filter: [organizationId, rule, state ?? ""],
        isEnd: (text) => /^\d{1,15}\/./.test(text),
      });
      const page = await hosting.listAlerts({
        ...tokens.query(req),
        ...{ organizationId, state },
        ...(rule !== "" && { rule }),
      });
      return { alerts: page.items.map(toAlertMessage), nextPageToken: tokens.after(page.next) };
    },
  };

  function ruleOf(updated: Awaited<ReturnType<AlertStorage["updateAlertRule"]>>, name: string) {
    switch (updated.outcome) {
      case "updated":
        return toRuleMessage(updated.rule, now());
      case "not_found":
        return noRule(name);
      case "version_conflict":
        throw changedMeanwhile(`alert rule ${name}`);
      case "receiver_unknown":
        throw noReceiver(updated.receiver);
    }
  }
}

function unique(names: readonly string[]): readonly string[] {
  return [...new Set(names)];
}

/** Errors: OPERATOR_REQUIRED. */
function checkOperator({ principal }: Member): void {
  if (principal.kind !== "session" || !principal.operator) {
    throw operatorRequired();
  }
}

/** The bound in the unit of its kind. Throws REQUEST_INVALID for a share of more than all. */
function thresholdOf(kind: AlertKind, asked: number): number {
  if (PERCENTAGES.has(kind) && asked > 100) {
    throw invalidField("rule.threshold", "is a percentage: at most 100");
  }
  return asked === 0 ? DEFAULT_THRESHOLDS[kind] : asked;
}
