/** The receivers of AlertService: who hears of alerts, and what they were told. */
import type { ServiceImpl } from "@connectrpc/connect";
import { AlertReceiverSchema, type AlertService } from "../../../gen/tessera/v1/alert_pb.js";
import type { FailureLimiter } from "../../auth/failures.ts";
import { type KeyRing, webhookContext } from "../../auth/keys.ts";
import { faultOfEmail, faultOfName, normalizeEmail } from "../../auth/names.ts";
import { adminRequired } from "../../auth/permissions.ts";
import { problem } from "../../errors.ts";
import { newWebhookSecret, secretsText } from "../../hosting/webhooks/signature.ts";
import { EgressPolicy } from "../../pool/egress/policy.ts";
import type { Mailer } from "../../server/mail/mailer.ts";
import { deed, type Member, memberOf, type Sources } from "../../server/rpc/engine/caller.ts";
import type { AlertMessage, AlertStorage } from "../../storage/hosting/alerts.ts";
import type {
  ReceiverKind,
  WebhookRecord,
  WebhookStorage,
} from "../../storage/hosting/webhooks.ts";
import { changedFields, changedMeanwhile } from "../mask.ts";
import { PageTokens } from "../page.ts";
import { missing, refuse, violationsOf } from "../violations.ts";
import { stateOf, toDeliveryMessage } from "../webhook/messages.ts";
import { faultOfAddress, rotatedSecret } from "../webhook/webhook.ts";
import { receiverKindOf, toReceiverMessage } from "./messages.ts";
import { lacking, notFound } from "./refusals.ts";

/** Receivers of alerts of an organization. */
const MAX_ALERT_RECEIVERS = 20;

const CHANGEABLE = ["address", "disabled"] as const;

export interface AlertReceiverOptions extends Sources {
  readonly hosting: Pick<AlertStorage, "deleteAlertReceiver"> & WebhookStorage;
  readonly keys: KeyRing;
  readonly mailer: Mailer | undefined;
  /** Limits mails by organization and person. */
  readonly mailLimiter: FailureLimiter;
  /** Where people reach the platform. */
  readonly publicUrl: string;
  /** Host rules of the operator: what receivers are reached at although it is not public. */
  readonly allowedEgress: readonly string[];
}

type ReceiverMethods =
  | "createAlertReceiver"
  | "listAlertReceivers"
  | "updateAlertReceiver"
  | "deleteAlertReceiver"
  | "rotateAlertReceiverSecret"
  | "testAlertReceiver"
  | "listAlertDeliveries"
  | "getAlertDelivery"
  | "redeliverAlert";

export function receiverHandlers(
  options: AlertReceiverOptions,
): Pick<ServiceImpl<typeof AlertService>, ReceiverMethods> {
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
          "receiver.address": faultOf(kind, address),
        }),
      );
      const asked = kind ?? missing();
      checkWho(member, asked, address);
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
      const changed = changedFields(AlertReceiverSchema, { message: receiver, mask }, CHANGEABLE);
      const { name, disabled, version } = receiver;
      const updated = await hosting.updateWebhook({
        ...deed(member.by, options),
        ...{ ...keyOf(member), name },
        ...(changed.has("address") && (await movedTo(member, receiver))),
        ...(changed.has("disabled") && { enabled: !disabled }),
        ...(version !== 0 && { version }),
      });
      switch (updated.outcome) {
        case "updated":
          return toReceiverMessage(updated.webhook, now());
        case "not_found":
          return lacking(name);
        case "version_conflict":
          throw changedMeanwhile(`the receiver of alerts ${name}`);
      }
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
      checkSending(member, await find(member, name));
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

    async getAlertDelivery({ deliveryId }, ctx) {
      const found = await hosting.getDelivery({ ...keyOf(memberOf(ctx)), deliveryId });
      return toDeliveryMessage(found ?? noDelivery(deliveryId));
    },

    async redeliverAlert({ deliveryId }, ctx) {
      const member = memberOf(ctx);
      const key = keyOf(member);
      const { webhookId } =
        (await hosting.getDelivery({ ...key, deliveryId })) ?? noDelivery(deliveryId);
      const receivers = await hosting.listWebhooks(key);
      const receiver = receivers.find((one) => one.webhookId === webhookId);
      checkSending(member, receiver ?? noDelivery(deliveryId));
      const asked = { ...deed(member.by, options), ...key, deliveryId };
      const found = (await hosting.redeliver(asked)) ?? noDelivery(deliveryId);
      return found.outcome === "again" ? toDeliveryMessage(found.delivery) : notEnabled(found);
    },
  };

  /** Why a receiver of a kind cannot have an address; undefined where it can. */
  function faultOf(kind: ReceiverKind | undefined, address: string): string | undefined {
    return kind === "mail" ? faultOfEmail(address) : faultOfAddress(address, policy);
  }

  /**
   * What a receiver has with another address: what its owner sees, and of Slack what is sealed. The
   * secret of signatures stays.
   */
  async function movedTo(
    member: Member,
    { name, address }: { readonly name: string; readonly address: string },
  ) {
    const { kind, webhookId } = await find(member, name);
    refuse(
      violationsOf({
        "receiver.kind": faultOfKind(kind, mailer),
        "receiver.address": faultOf(kind, address),
      }),
    );
    checkWho(member, kind, address);
    const context = webhookContext({ ...keyOf(member), webhookId });
    return {
      ...{ webhookId, url: shownUrl(kind, address) },
      ...(kind === "slack" && { sealed: keys.seal(address, context) }),
    };
  }

  /** Who makes the platform write to an address that is not theirs is an admin. */
  function checkWho(member: Member, kind: ReceiverKind, address: string): void {
    const own = member.userId !== undefined && normalizeEmail(address) === member.by.name;
    if (kind === "mail" && member.role !== "admin" && !own) {
      throw adminRequired();
    }
  }

  /**
   * Lets a person have something sent at once, which is counted where it is a mail. Errors:
   * WEBHOOK_DISABLED, RATE_LIMITED.
   */
  function checkSending({ organizationId }: Member, { name, kind, disabled }: WebhookRecord): void {
    if (disabled !== undefined) {
      notEnabled({ name, reason: disabled.reason });
    }
    if (kind === "mail") {
      const key = `organization ${organizationId}`;
      options.mailLimiter.check(key);
      options.mailLimiter.fail(key);
    }
  }
}

/** Throws WEBHOOK_DISABLED. */
function notEnabled({ name, reason }: { readonly name: string; readonly reason: string }): never {
  throw problem(
    "WEBHOOK_DISABLED",
    `the receiver of alerts ${name} is disabled (${reason}): enable it first (tessera alert receiver update ${name} --enable)`,
  );
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
function noDelivery(deliveryId: string): never {
  throw notFound(
    `there is no delivery ${JSON.stringify(deliveryId)} to a receiver of alerts, or it or the receiver was deleted: they are kept for three days`,
  );
}
