/**
 * Secrets and signatures of webhooks, by Standard Webhooks 1
 * (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md): a
 * secret is `whsec_` and base64 of its bytes, a signature `v1,` and base64 of the HMAC-SHA256 of
 * `id.timestamp.body` by those bytes. After a rotation, each message has a signature of the new secret
 * and one of the secret before, until that one's time is over.
 */
import { createHmac, randomBytes } from "node:crypto";

/** Bytes of a secret: as long as the digest; the standard takes from 24 to 64. */
const SECRET_BYTES = 32;
/** Secrets that sign at a time: rotating faster drops the oldest. */
const MAX_WEBHOOK_SECRETS = 4;

/** A secret of a webhook. */
export interface WebhookSecret {
  /** `whsec_…` */
  readonly secret: string;
  /** Absent for the newest, which has no end. */
  readonly untilMs?: number;
}

export function newWebhookSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString("base64")}`;
}

/** Writes the secrets of a webhook as the text to seal, newest first. */
export function secretsText(secrets: readonly WebhookSecret[]): string {
  return JSON.stringify(secrets);
}

export function readSecrets(text: string): WebhookSecret[] {
  return JSON.parse(text) as WebhookSecret[];
}

/** Puts a new secret before the others, which sign until `untilMs`, or as long as they had. */
export function rotated(
  secrets: readonly WebhookSecret[],
  { secret, nowMs, untilMs }: { secret: string; nowMs: number; untilMs: number },
): WebhookSecret[] {
  const others = secrets
    .map((one) => ({ ...one, untilMs: Math.min(one.untilMs ?? untilMs, untilMs) }))
    .filter((one) => one.untilMs > nowMs);
  return [{ secret }, ...others].slice(0, MAX_WEBHOOK_SECRETS);
}

/** The headers of a message that is sent now. */
export function signedHeaders(
  { id, body, nowMs }: { readonly id: string; readonly body: string; readonly nowMs: number },
  secrets: readonly WebhookSecret[],
): Record<"webhook-id" | "webhook-timestamp" | "webhook-signature", string> {
  const timestamp = String(Math.floor(nowMs / 1_000));
  const signatures = secrets
    .filter(({ untilMs }) => untilMs === undefined || untilMs > nowMs)
    .map(({ secret }) => {
      const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
      const digest = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`);
      return `v1,${digest.digest("base64")}`;
    });
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": signatures.join(" "),
  };
}
