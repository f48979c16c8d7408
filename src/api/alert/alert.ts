/** AlertService: rules of alerts, what has fired, and the receivers that are told. */
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  AlertReceiverSchema,
  AlertRuleSchema,
  type AlertService,
} from "../../../gen/tessera/v1/alert_pb.js";
import type { FailureLimiter } from "../../auth/failures.ts";
import { type KeyRing, webhookContext } from "../../auth/keys.ts";
import { faultOfEmail, faultOfName, normalizeEmail } from "../../auth/names.ts";
import { adminRequired, operatorRequired } from "../../auth/permissions.ts";
import { type Problem, problem } from "../../errors.ts";
import { newWebhookSecret, secretsText } from "../../hosting/webhooks/signature.ts";
import { EgressPolicy } from "../../pool/egress/policy.ts";
import type { Mailer } from "../../server/mail/mailer.ts";
import { deed, type Member, memberOf, type Sources } from "../../server/rpc/engine/caller.ts";
import type { Organizations } from "../../storage/accounts/organizations.ts";
import type { AlertKind, AlertMessage, AlertStorage } from "../../storage/hosting/alerts.ts";
import type { ReceiverKind, WebhookStorage } from "../../storage/hosting/webhooks.ts";
import { findDeployment } from "../deployment/refusals.ts";
import { changedFields, onlyDisables } from "../mask.ts";
import { PageTokens } from "../page.ts";
import { invalidField, missing, refuse, violationsOf } from "../violations.ts";
import { stateOf, toDeliveryMessage } from "../webhook/messages.ts";
import { faultOfAddress, rotatedSecret } from "../webhook/webhook.ts";
import {
  kindOf,
  receiverKindOf,
  toAlertMessage,
  toReceiverMessage,
  toRuleMessage,
} from "./messages.ts";

/** Alert rules of an organization. */
const MAX_ALERT_RULES = 100;
/** Receivers of alerts of an organization. */
const MAX_ALERT_RECEIVERS = 20;
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

interface AlertServiceOptions extends Sources {
  readonly accounts: Pick<Organizations, "findDeployment">;
  readonly hosting: AlertStorage & WebhookStorage;
  readonly keys: KeyRing;
  readonly mailer: Mailer | undefined;
  /** Limits mails by organization and person. */
  readonly mailLimiter: FailureLimiter;
  /** Where people reach the platform. */
  readonly publicUrl: string;
  /** Host rules of the operator: what receivers are reached at although it is not public. */
  readonly allowedEgress: readonly string[];
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
      const { name, deployments, receivers, hold, disabled } = rule;
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
      const { rule, firing } = req;
      const tokens = new PageTokens({
        method: "ListAlerts",
        filter: [organizationId, rule, String(firing)],
        isEnd: (text) => /^\d{1,15}\/./.test(text),
      });
      const page = await hosting.listAlerts({
        ...tokens.query(req),
        ...{ organizationId, firing },
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
      case "receiver_unknown":
        throw noReceiver(updated.receiver);
    }
  }
}

function receiverHandlers(
  options: AlertServiceOptions,
): Omit<ServiceImpl<typeof AlertService>, RuleMethods> {
  const { hosting, keys, now, newId, mailer, publicUrl } = options;
  const policy = EgressPolicy.ofPlatform(options.allowedEgress);

  /** Where receivers stand among webhooks. */
  const keyOf = ({ organizationId }: Pick<Member, "organizationId">) => ({
    organizationId,
    deploymentId: organizationId,
  });
  const find = async (member: Member, name: string) =>
    (await hosting.listWebhooks(keyOf(member))).find((one) => one.name === name) ?? lacking(name);

  return {
    async createAlertReceiver({ receiver = missing() }, ctx) {
      const member = memberOf(ctx);
      const { name, address } = receiver;
      const kind = receiverKindOf(receiver.kind);
      refuse(
        violationsOf({
          "receiver.name": faultOfName(name),
          "receiver.kind": faultOfKind(kind, mailer),
          "receiver.address":
            kind === "mail" ? faultOfEmail(address) : faultOfAddress(address, policy),
        }),
      );
      const asked = kind ?? missing();
      if (asked === "mail") {
        checkMail(member, address);
      }
      const key = keyOf(member);
      const webhookId = newId();
      const secret = asked === "webhook" ? newWebhookSecret() : "";
      const created = await hosting.createWebhook({
        ...deed(member.by, options),
        ...{ ...key, name, webhookId, kind: asked, limit: MAX_ALERT_RECEIVERS },
        ...{ ends: [], endpoint: "", namedOnly: false, url: shownUrl(asked, address) },
        // The URL of an incoming webhook of Slack is all that its callers need.
        sealed: keys.seal(
          asked === "slack" ? address : secretsText(secret === "" ? [] : [{ secret }]),
          webhookContext({ ...key, webhookId }),
        ),
      });
      switch (created.outcome) {
        case "created":
          return { receiver: toReceiverMessage(created.webhook, now()), secret };
        case "name_taken":
          throw problem(
            "ALERT_EXISTS",
            `there is a receiver of alerts ${name}: choose another name, or delete it first`,
          );
        case "limit":
          throw problem(
            "LIMIT_REACHED",
            `the organization has ${MAX_ALERT_RECEIVERS} receivers of alerts: delete one first`,
          );
        case "not_found":
          throw new Error("a receiver of alerts has no deployment that could be missing");
      }
    },

    async listAlertReceivers(_req, ctx) {
      const nowMs = now();
      const found = await hosting.listWebhooks(keyOf(memberOf(ctx)));
      return { receivers: found.map((one) => toReceiverMessage(one, nowMs)) };
    },

    async updateAlertReceiver({ receiver = missing(), updateMask: mask }, ctx) {
      const member = memberOf(ctx);
      changedFields(AlertReceiverSchema, { message: receiver, mask }, ["disabled"]);
      const { name, disabled } = receiver;
      const updated = await hosting.updateWebhook({
        ...deed(member.by, options),
        ...{ ...keyOf(member), name, enabled: !disabled },
      });
      return updated.outcome === "updated"
        ? toReceiverMessage(updated.webhook, now())
        : lacking(name);
    },

    async deleteAlertReceiver({ name }, ctx) {
      const { organizationId, by } = memberOf(ctx);
      const key = { organizationId, name };
      const gone = await hosting.deleteAlertReceiver({ ...deed(by, options), ...key });
      switch (gone.outcome) {
        case "deleted":
          return {};
        case "not_found":
          return lacking(name);
        case "in_use":
          throw problem(
            "ALERT_RECEIVER_IN_USE",
            `the alert rule ${gone.rule} tells ${name}: name other receivers for it first`,
          );
      }
    },

    async rotateAlertReceiverSecret({ name, grace }, ctx) {
      const member = memberOf(ctx);
      const { kind } = await find(member, name);
      if (kind !== "webhook") {
        throw notFound(`the receiver of alerts ${name} is no webhook, and has no secret to rotate`);
      }
      const key = { ...keyOf(member), name };
      const rotated = await rotatedSecret(options, { key, by: member.by, grace });
      const { webhook, secret } = rotated ?? lacking(name);
      return { receiver: toReceiverMessage(webhook, now()), secret };
    },

    async testAlertReceiver({ name }, ctx) {
      const member = memberOf(ctx);
      const { kind, disabled } = await find(member, name);
      if (disabled !== undefined) {
        throw problem(
          "WEBHOOK_DISABLED",
          `the receiver of alerts ${name} is disabled (${disabled.reason}): enable it first (tessera alert receiver enable ${name})`,
        );
      }
      if (kind === "mail") {
        countMail(member);
      }
      const added = await hosting.addTestDelivery({
        ...deed(member.by, options),
        ...{ ...keyOf(member), name, deliveryId: `test-${newId()}` },
        body: testBody({ organization: member.organization, name, publicUrl, nowMs: now() }),
      });
      return toDeliveryMessage(added ?? lacking(name));
    },

    async listAlertDeliveries(req, ctx) {
      const member = memberOf(ctx);
      const { receiver } = req;
      const state = stateOf(req.state);
      const tokens = new PageTokens({
        method: "ListAlertDeliveries",
        filter: [member.organizationId, receiver, state],
        isEnd: (text) => /^\d{1,15}\/./.test(text),
      });
      const page = await hosting.listDeliveries({
        ...tokens.query(req),
        ...keyOf(member),
        ...(receiver !== "" && { webhook: receiver }),
        ...(state !== undefined && { state }),
      });
      return {
        deliveries: page.items.map(toDeliveryMessage),
        nextPageToken: tokens.after(page.next),
      };
    },
  };

  /** Who makes the platform write to an address that is not theirs is an admin. */
  function checkMail(member: Member, address: string): void {
    const own = member.userId !== undefined && normalizeEmail(address) === member.by.name;
    if (member.role !== "admin" && !own) {
      throw adminRequired();
    }
  }

  /** Counts a mail of an organization. Errors: RATE_LIMITED. */
  function countMail({ organizationId }: Member): void {
    const key = `organization ${organizationId}`;
    options.mailLimiter.check(key);
    options.mailLimiter.fail(key);
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

function faultOfKind(
  kind: ReceiverKind | undefined,
  mailer: Mailer | undefined,
): string | undefined {
  if (kind === undefined) {
    return "is missing: webhook, mail or slack";
  }
  return kind === "mail" && mailer === undefined
    ? "cannot be mail: this platform sends none, until its operator sets up a mail server (--mail-from, TESSERA_SMTP_URL)"
    : undefined;
}

/** The address of a receiver as it is listed. */
function shownUrl(kind: ReceiverKind, address: string): string {
  switch (kind) {
    case "mail":
      return `mailto:${address}`;
    case "slack":
      return `${new URL(address).origin}/`;
    case "webhook":
      return address;
  }
}

function testBody({
  organization,
  name,
  publicUrl,
  nowMs,
}: {
  readonly organization: string;
  readonly name: string;
  readonly publicUrl: string;
  readonly nowMs: number;
}): string {
  const message: AlertMessage = {
    type: "alert.test",
    timestamp: new Date(nowMs).toISOString(),
    data: {
      ...{ organization, rule: name, kind: "", condition: "", alerts: [], more: 0 },
      url: `${publicUrl}/o/${organization}/alerts`,
    },
  };
  return JSON.stringify(message);
}

/** Throws ALERT_NOT_FOUND. */
function noRule(name: string): never {
  throw notFound(`there is no alert rule ${JSON.stringify(name)}`);
}

/** Throws ALERT_NOT_FOUND. */
function lacking(name: string): never {
  throw noReceiver(name);
}

function noReceiver(name: string): Problem {
  return notFound(`there is no receiver of alerts ${JSON.stringify(name)}`);
}

function notFound(message: string): Problem {
  return problem("ALERT_NOT_FOUND", message);
}
