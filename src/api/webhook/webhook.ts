/** WebhookService: webhooks of deployments, and what they were told. */
import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { WebhookSchema, type WebhookService } from "../../../gen/tessera/v1/webhook_pb.js";
import { type KeyRing, webhookContext } from "../../auth/keys.ts";
import { faultOfName } from "../../auth/names.ts";
import { readsTasks } from "../../auth/permissions.ts";
import { type Problem, problem } from "../../errors.ts";
import { testBody } from "../../hosting/webhooks/event.ts";
import {
  newWebhookSecret,
  readSecrets,
  rotated,
  secretsText,
} from "../../hosting/webhooks/signature.ts";
import { targetOf } from "../../pool/egress/dial-url.ts";
import { EgressPolicy } from "../../pool/egress/policy.ts";
import { EgressRefusedError } from "../../pool/egress/refusals.ts";
import { deed, memberOf, type Sources } from "../../server/rpc/engine/caller.ts";
import type { Actor } from "../../storage/accounts/deed.ts";
import type { Organizations } from "../../storage/accounts/organizations.ts";
import type { DeploymentKey } from "../../storage/hosting/deployment-key.ts";
import type { WebhookRecord, WebhookStorage } from "../../storage/hosting/webhooks.ts";
import { deploymentNotFound, findDeployment } from "../deployment/refusals.ts";
import { changedFields, changedMeanwhile, onlyDisables } from "../mask.ts";
import { PageTokens } from "../page.ts";
import { missing, refuse, violationsOf } from "../violations.ts";
import {
  endsOf,
  stateOf,
  toAnswerMessage,
  toDeliveryMessage,
  toWebhookMessage,
} from "./messages.ts";

/** Webhooks of a deployment. */
const MAX_WEBHOOKS = 10;
/** Failing webhooks of an organization that are listed. */
const MAX_FAILING_WEBHOOKS = 100;
/** How long the secret before signs, too, unless a rotation says otherwise. */
const DEFAULT_SECRET_GRACE_MS = 86_400_000;

const CHANGEABLE = ["url", "events", "endpoint", "named_only", "disabled"] as const;

interface WebhookServiceOptions extends Sources {
  readonly accounts: Pick<Organizations, "findDeployment">;
  readonly hosting: WebhookStorage;
  readonly keys: KeyRing;
  /** Host rules of the operator: what webhooks reach although it is not public. */
  readonly allowedEgress: readonly string[];
}

export function webhookService(options: WebhookServiceOptions): ServiceImpl<typeof WebhookService> {
  const { accounts, hosting, keys, now, newId } = options;
  const policy = EgressPolicy.ofPlatform(options.allowedEgress);

  /** The deployment of a request, and who asks. Throws DEPLOYMENT_NOT_FOUND. */
  const find = async (name: string, ctx: Pick<HandlerContext, "values">) => {
    const member = memberOf(ctx);
    const { organizationId, deploymentId, authorization } = await findDeployment(
      accounts,
      member,
      name,
    );
    const key: DeploymentKey = { organizationId, deploymentId };
    const reads = !authorization || readsTasks(member.principal, deploymentId);
    return { key, by: member.by, organization: member.organization, reads };
  };

  /** The same for what would tell how tasks end. Throws ACCESS_DENIED for who may not read them. */
  const findReadable = async (name: string, ctx: Pick<HandlerContext, "values">) => {
    const found = await find(name, ctx);
    return found.reads ? found : notReadable(name);
  };

  return {
    async createWebhook({ deployment, webhook = missing() }, ctx) {
      const { key, by } = await findReadable(deployment, ctx);
      const { name, url, endpoint, namedOnly } = webhook;
      refuse(
        violationsOf({
          "webhook.name": faultOfName(name),
          "webhook.url": faultOfAddress(url, policy),
        }),
      );
      const webhookId = newId();
      const secret = newWebhookSecret();
      const created = await hosting.createWebhook({
        ...deed(by, options),
        ...{ ...key, name, url, endpoint, namedOnly, webhookId, limit: MAX_WEBHOOKS },
        ends: endsOf(webhook.events),
        sealed: keys.seal(secretsText([{ secret }]), webhookContext({ ...key, webhookId })),
      });
      switch (created.outcome) {
        case "created":
          return { webhook: toWebhookMessage(created.webhook, now()), secret };
        case "not_found":
          throw deploymentNotFound(deployment);
        case "name_taken":
          throw problem(
            "WEBHOOK_EXISTS",
            `deployment ${deployment} has a webhook ${name}: change it, or choose another name`,
          );
        case "limit":
          throw problem(
            "LIMIT_REACHED",
            `deployment ${deployment} has ${MAX_WEBHOOKS} webhooks: delete one first`,
          );
      }
    },

    async listWebhooks({ deployment }, ctx) {
      const { key } = await find(deployment, ctx);
      const nowMs = now();
      const found = await hosting.listWebhooks(key);
      return { webhooks: found.map((record) => toWebhookMessage(record, nowMs)) };
    },

    async listFailingWebhooks(_req, ctx) {
      const { organizationId, principal } = memberOf(ctx);
      const nowMs = now();
      const limit = MAX_FAILING_WEBHOOKS;
      const found = await hosting.listFailingWebhooks({ organizationId, limit });
      return {
        webhooks: found.map(({ deployment, authorization, webhook, answer }) => ({
          deployment: deployment.name,
          webhook: toWebhookMessage(webhook, nowMs),
          ...(answer !== undefined &&
            (!authorization || readsTasks(principal, deployment.deploymentId)) && {
              answer: toAnswerMessage(answer),
            }),
        })),
      };
    },

    async updateWebhook({ deployment, webhook = missing(), updateMask: mask }, ctx) {
      const { key, by, reads } = await find(deployment, ctx);
      const changed = changedFields(WebhookSchema, { message: webhook, mask }, CHANGEABLE);
      const { name, url, endpoint, namedOnly, disabled, version } = webhook;
      // Anybody who sees one go wrong may stop it.
      if (!reads && !onlyDisables(changed, disabled)) {
        notReadable(deployment);
      }
      if (changed.has("url")) {
        refuse(violationsOf({ "webhook.url": faultOfAddress(url, policy) }));
      }
      const updated = await hosting.updateWebhook({
        ...deed(by, options),
        ...{ ...key, name },
        ...(changed.has("url") && { url }),
        ...(changed.has("events") && { ends: endsOf(webhook.events) }),
        ...(changed.has("endpoint") && { endpoint }),
        ...(changed.has("named_only") && { namedOnly }),
        ...(changed.has("disabled") && { enabled: !disabled }),
        ...(version !== 0 && { version }),
      });
      switch (updated.outcome) {
        case "updated":
          return toWebhookMessage(updated.webhook, now());
        case "not_found":
          return unknown(deployment, name);
        case "version_conflict":
          throw changedMeanwhile(`webhook ${name}`);
      }
    },

    async deleteWebhook({ deployment, name }, ctx) {
      const { key, by } = await find(deployment, ctx);
      if (!(await hosting.deleteWebhook({ ...deed(by, options), ...key, name }))) {
        unknown(deployment, name);
      }
      return {};
    },

    async rotateWebhookSecret({ deployment, name, grace }, ctx) {
      const { key, by } = await findReadable(deployment, ctx);
      const changed = await rotatedSecret(options, { key: { ...key, name }, by, grace });
      const { webhook, secret } = changed ?? unknown(deployment, name);
      return { webhook: toWebhookMessage(webhook, now()), secret };
    },

    async testWebhook({ deployment, name }, ctx) {
      const { key, by, organization } = await findReadable(deployment, ctx);
      const webhook = (await hosting.listWebhooks(key)).find((each) => each.name === name);
      checkEnabled(webhook, deployment);
      const added = await hosting.addTestDelivery({
        ...deed(by, options),
        ...{ ...key, name, deliveryId: `test-${newId()}` },
        body: testBody({ organization, deployment }, now()),
      });
      return toDeliveryMessage(added ?? unknown(deployment, name));
    },

    async listWebhookDeliveries(req, ctx) {
      const { key } = await findReadable(req.deployment, ctx);
      const { webhook, taskId } = req;
      const state = stateOf(req.state);
      const filter = [key.deploymentId, webhook, taskId, state];
      const tokens = new PageTokens({
        method: "ListWebhookDeliveries",
        filter,
        isEnd: (text) => /^\d{1,15}\/./.test(text),
      });
      const page = await hosting.listDeliveries({
        ...tokens.query(req),
        ...key,
        ...(webhook !== "" && { webhook }),
        ...(taskId !== "" && { taskId }),
        ...(state !== undefined && { state }),
      });
      return {
        deliveries: page.items.map(toDeliveryMessage),
        nextPageToken: tokens.after(page.next),
      };
    },

    async getWebhookDelivery({ deployment, deliveryId }, ctx) {
      const { key } = await findReadable(deployment, ctx);
      const found = await hosting.getDelivery({ ...key, deliveryId });
      return toDeliveryMessage(found ?? noDelivery(deployment, deliveryId));
    },

    async redeliverWebhook({ deployment, deliveryId }, ctx) {
      const { key, by } = await findReadable(deployment, ctx);
      const asked = { ...deed(by, options), ...key, deliveryId };
      const found = (await hosting.redeliver(asked)) ?? noDelivery(deployment, deliveryId);
      return found.outcome === "again"
        ? toDeliveryMessage(found.delivery)
        : notEnabled(deployment, found);
    },
  };
}

/**
 * Gives a webhook a new secret; undefined where no webhook has the name. Throws VERSION_CONFLICT where somebody
 * else has done so at the same time.
 */
export async function rotatedSecret(
  { hosting, keys, now, newId }: Pick<WebhookServiceOptions, "hosting" | "keys" | "now" | "newId">,
  {
    key,
    by,
    grace,
  }: {
    readonly key: DeploymentKey & { readonly name: string };
    readonly by: Actor;
    readonly grace: Duration | undefined;
  },
): Promise<{ readonly webhook: WebhookRecord; readonly secret: string } | undefined> {
  const before = await hosting.getSealedWebhook(key);
  if (before === undefined) {
    return undefined;
  }
  const context = webhookContext(before);
  const nowMs = now();
  const untilMs = nowMs + (grace === undefined ? DEFAULT_SECRET_GRACE_MS : durationMs(grace));
  const secret = newWebhookSecret();
  const secrets = readSecrets(keys.unseal(before.sealed, context));
  const webhook = await hosting.rotateWebhook({
    ...deed(by, { now, newId }),
    ...{ ...key, from: before.sealed, rotatedUntilMs: untilMs },
    to: keys.seal(secretsText(rotated(secrets, { secret, nowMs, untilMs })), context),
  });
  if (webhook === undefined) {
    throw problem(
      "VERSION_CONFLICT",
      `the secret of ${key.name} was rotated, or it was deleted, at the same time: read it again`,
    );
  }
  return { webhook, secret };
}

/** Why nothing can be sent to an address; undefined where it may be. Its name is resolved later. */
export function faultOfAddress(text: string, policy: EgressPolicy): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol)) {
    return "must be a URL such as https://example.com/told";
  }
  if (url.username !== "" || url.password !== "" || url.hash !== "") {
    return "must have no name, no password and no fragment: receivers know messages by their signature";
  }
  const asked = targetOf(url);
  try {
    const admitted = policy.admit(asked);
    return admitted.kind === "address"
      ? policy.addressFault(asked, admitted.address)
      : policy.nameFault(asked);
  } catch (err) {
    if (err instanceof EgressRefusedError) {
      return err.message;
    }
    throw err;
  }
}

/** Throws WEBHOOK_DISABLED: what is sent to it would wait. */
function checkEnabled(webhook: WebhookRecord | undefined, deployment: string): void {
  if (webhook?.disabled !== undefined) {
    notEnabled(deployment, { name: webhook.name, reason: webhook.disabled.reason });
  }
}

/** Throws WEBHOOK_DISABLED. */
function notEnabled(
  deployment: string,
  { name, reason }: { readonly name: string; readonly reason: string },
): never {
  throw problem(
    "WEBHOOK_DISABLED",
    `webhook ${name} is disabled (${reason}): enable it first (tessera webhook update ${deployment} ${name} --enable)`,
  );
}

/** Throws ACCESS_DENIED. */
function notReadable(deployment: string): never {
  throw problem(
    "ACCESS_DENIED",
    `deployment ${deployment} asks its callers for a token, and this one may not call it, so a webhook does not tell it how tasks end: use a token that has protected endpoint access for ${deployment} as well, or have a person who is signed in do it`,
  );
}

/** Throws WEBHOOK_NOT_FOUND. */
function unknown(deployment: string, name: string): never {
  throw notFound(`deployment ${deployment} has no webhook ${JSON.stringify(name)}`);
}

function noDelivery(deployment: string, deliveryId: string): never {
  throw notFound(
    `deployment ${deployment} has no delivery ${JSON.stringify(deliveryId)}, or not any more, or its webhook is gone`,
  );
}

function notFound(message: string): Problem {
  return problem("WEBHOOK_NOT_FOUND", message);
}
