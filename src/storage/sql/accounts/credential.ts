/** Verification queries: the credential of a token's value, and the record of its uses. */
import type { Accounts } from "../../accounts/accounts.ts";
import type { Role } from "../../accounts/people.ts";
import type { TokenCredential } from "../../accounts/tokens.ts";
import { type Operation, pieces, placeholders, prepared, query } from "../operation.ts";
import { GRANT_COLUMNS, type GrantRow, toDeployments, toGrants } from "./token-rows.ts";

interface CredentialRow extends GrantRow {
  readonly digest: string;
  readonly digest_key_id: string;
  readonly valid_until_ms: number | null;
  readonly generation: number;
  readonly monitoring_enabled: number;
  readonly user_id: string | null;
  readonly email: string | null;
  readonly role: Role | null;
}

/** Credentials. A personal token is found only while its owner is a member. */
const SELECT = `
  SELECT s.digest, s.digest_key_id, s.valid_until_ms, s.generation, o.monitoring_enabled,
    m.user_id, m.email, m.role, ${GRANT_COLUMNS}
  FROM token_secrets s
  JOIN tokens t ON t.organization_id = s.organization_id AND t.token_id = s.token_id
  JOIN organizations o ON o.organization_id = t.organization_id || ''
  LEFT JOIN memberships m
    ON m.organization_id = t.organization_id AND m.user_id = t.user_id AND t.kind = 'personal'
  WHERE (t.kind <> 'personal' OR m.user_id IS NOT NULL)`;

function find(digests: number): string {
  return `${SELECT} AND s.digest IN ${placeholders(1, digests)}
    AND (s.valid_until_ms IS NULL OR s.valid_until_ms > ?)`;
}

const FIND_BY_ID = `${SELECT} AND s.organization_id = ? AND s.token_id = ?`;

/** Also finds a token that has expired or is not valid yet: caches check the time at each use. */
export function* findCredential({
  digests,
  nowMs,
}: Parameters<Accounts["findCredential"]>[0]): Operation<TokenCredential | undefined> {
  if (digests.length === 0) {
    return undefined;
  }
  const name = `find_credential_${digests.length}`;
  const [row] = yield* prepared<CredentialRow>(name, find(digests.length), ...digests, nowMs);
  return row && toCredential(row);
}

export function* findCredentialOf({
  organizationId,
  tokenId,
  generation,
}: Parameters<Accounts["findCredentialOf"]>[0]): Operation<TokenCredential | undefined> {
  const [row] =
    generation === undefined
      ? yield* prepared<CredentialRow>(
          "find_credential_by_id",
          `${FIND_BY_ID} AND s.valid_until_ms IS NULL`,
          organizationId,
          tokenId,
        )
      : yield* prepared<CredentialRow>(
          "find_credential_by_generation",
          `${FIND_BY_ID} AND s.generation = ?`,
          organizationId,
          tokenId,
          generation,
        );
  return row && toCredential(row);
}

function toCredential(row: CredentialRow): TokenCredential {
  const { user_id: userId, email, role } = row;
  return {
    kind: "token",
    digest: row.digest,
    digestKeyId: row.digest_key_id,
    generation: row.generation,
    tokenId: row.token_id,
    tokenKind: row.kind,
    tokenName: row.name,
    organizationId: row.organization_id,
    organization: row.organization,
    access: toGrants(row),
    allDeployments: row.all_deployments === 1,
    deployments: toDeployments(row.deployments),
    expiresAtMs: Math.min(row.expires_at_ms, row.valid_until_ms ?? Number.POSITIVE_INFINITY),
    notBeforeMs: row.not_before_ms ?? undefined,
    allowedNetworks: JSON.parse(row.allowed_networks) as string[],
    user: userId && email && role ? { userId, email, role } : undefined,
    monitoringEnabled: row.monitoring_enabled === 1,
  };
}

/** Token uses written by one statement. */
const MAX_USES_PER_STATEMENT = 50;

/**
 * Writes in the order of the tokens' keys, the lock order of all operations. It
 * takes no lock of the organization, because no decision depends on these
 * columns.
 */
export function* recordUses({ uses }: Parameters<Accounts["recordUses"]>[0]): Operation<void> {
  const latest = new Map<string, (typeof uses)[number]>();
  for (const use of uses) {
    const key = `${use.organizationId} ${use.tokenId}`;
    if (use.timeMs >= (latest.get(key)?.timeMs ?? 0)) {
      latest.set(key, use);
    }
  }
  const sorted = [...latest].sort(([one], [other]) => (one < other ? -1 : 1));
  for (const piece of pieces(sorted, MAX_USES_PER_STATEMENT)) {
    const rows = piece.map(() => "(?, ?, CAST(? AS bigint), ?)").join(", ");
    yield* query(
      `UPDATE tokens SET last_used_at_ms = uses.column3, last_used_address = uses.column4
       FROM (VALUES ${rows}) AS uses
       WHERE organization_id = uses.column1 AND token_id = uses.column2
         AND (last_used_at_ms IS NULL OR last_used_at_ms < uses.column3)`,
      ...piece.flatMap(([, use]) => [use.organizationId, use.tokenId, use.timeMs, use.address]),
    );
  }
}
