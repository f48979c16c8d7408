/**
 * Stored values of tokens. A token has a current value and, for a grace period
 * after a rotation, the previous one; unique indexes exclude a third. A sealed
 * value is stored only for the current value of an organization token, and only
 * while the organization has reveal on, whatever the caller passes.
 */
import type { Accounts } from "../../accounts/accounts.ts";
import type { OrganizationRecord } from "../../accounts/organizations.ts";
import type { NewSecret, TokenKind, TokenRecord } from "../../accounts/tokens.ts";
import { type MethodResult, type Operation, query } from "../operation.ts";
import { record, recordEverywhere } from "./audit.ts";
import { announce } from "./changes.ts";
import { lockOrganization } from "./locks.ts";
import { toPage } from "./rows.ts";
import { getToken } from "./token-rows.ts";

interface SecretOwner {
  readonly tokenId: string;
  readonly kind: TokenKind;
  /** Of the token, that has this value from now on: it grows with each rotation. */
  readonly version: number;
}

/** Stores the current value. Requires the organization's lock. */
export function* insertSecret(
  { organizationId, revealEnabled }: OrganizationRecord,
  { tokenId, kind, version }: SecretOwner,
  { digest, digestKeyId, hint, sealed }: NewSecret,
): Operation<void> {
  yield* query(
    `INSERT INTO token_secrets (organization_id, token_id, digest, digest_key_id, hint, sealed,
       generation)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
    organizationId,
    tokenId,
    digest,
    digestKeyId,
    hint,
    revealEnabled && kind === "organization" ? sealed : undefined,
    // Signed as one byte.
    version % 256,
  );
}

export function* rotateToken(
  parameters: Parameters<Accounts["rotateToken"]>[0],
): Operation<TokenRecord | undefined> {
  const { organizationId, tokenId, secret, graceMs, nowMs } = parameters;
  const organization = yield* lockOrganization(organizationId);
  const [token] = yield* query<{ name: string; kind: TokenKind; version: number }>(
    `UPDATE tokens SET version = version + 1, updated_at_ms = ?
     WHERE organization_id = ? AND token_id = ? RETURNING name, kind, version`,
    nowMs,
    organizationId,
    tokenId,
  );
  if (organization === undefined || token === undefined) {
    return undefined;
  }
  yield* query(
    `DELETE FROM token_secrets WHERE organization_id = ? AND token_id = ?
     ${graceMs > 0 ? "AND valid_until_ms IS NOT NULL" : ""}`,
    organizationId,
    tokenId,
  );
  yield* query(
    `UPDATE token_secrets SET valid_until_ms = ?, sealed = NULL
     WHERE organization_id = ? AND token_id = ?`,
    nowMs + graceMs,
    organizationId,
    tokenId,
  );
  yield* insertSecret(organization, { tokenId, ...token }, secret);
  const rotated = yield* getToken({ organizationId, tokenId });
  yield* record(parameters, organizationId, {
    action: "token.rotate",
    subjectId: tokenId,
    subject: token.name,
    details: { hint: secret.hint, grace_seconds: String(graceMs / 1_000) },
  });
  yield* announce(nowMs, { kind: "token", id: tokenId });
  return rotated;
}

export function* getSealed({
  organizationId,
  tokenId,
}: Parameters<Accounts["getSealed"]>[0]): Operation<string | null | undefined> {
  const [row] = yield* query<{ sealed: string | null }>(
    `SELECT CASE WHEN o.reveal_enabled = 1 THEN s.sealed END AS sealed
     FROM token_secrets s JOIN organizations o ON o.organization_id = s.organization_id
     WHERE s.organization_id = ? AND s.token_id = ? AND s.valid_until_ms IS NULL`,
    organizationId,
    tokenId,
  );
  return row?.sealed;
}

export function* replaceDigest({
  digest,
  newDigest,
  newDigestKeyId,
}: Parameters<Accounts["replaceDigest"]>[0]): Operation<void> {
  yield* query(
    "UPDATE token_secrets SET digest = ?, digest_key_id = ? WHERE digest = ?",
    newDigest,
    newDigestKeyId,
    digest,
  );
}

interface SealedRow {
  readonly organization_id: string;
  readonly token_id: string;
  readonly digest: string;
  readonly sealed: string;
}

export function* listSealed({
  limit,
  after = "",
}: Parameters<Accounts["listSealed"]>[0]): Operation<MethodResult<Accounts, "listSealed">> {
  const rows = yield* query<SealedRow>(
    `SELECT organization_id, token_id, digest, sealed FROM token_secrets
     WHERE sealed IS NOT NULL AND digest > ? ORDER BY digest LIMIT ?`,
    after,
    limit + 1,
  );
  const items = rows.map(({ organization_id, token_id, digest, sealed }) => ({
    organizationId: organization_id,
    tokenId: token_id,
    digest,
    sealed,
  }));
  return toPage(items, limit, ({ digest }) => digest);
}

export function* replaceSealed({
  digest,
  from,
  to,
}: Parameters<Accounts["replaceSealed"]>[0]): Operation<void> {
  yield* query(
    "UPDATE token_secrets SET sealed = ? WHERE digest = ? AND sealed = ?",
    to,
    digest,
    from,
  );
}

export function* announceKeys(
  parameters: Parameters<Accounts["announceKeys"]>[0],
): Operation<void> {
  yield* recordEverywhere(parameters, { action: "keys.rotate", subjectId: "", subject: "" });
  yield* announce(parameters.nowMs, { kind: "keys", id: "" });
}
