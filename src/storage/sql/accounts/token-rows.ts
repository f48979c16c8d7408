/** Maps rows to tokens. */

import type { TokenGrants, TokenKind, TokenRecord } from "../../accounts/tokens.ts";
import { type Operation, query } from "../operation.ts";

/** The common columns of tokens and credentials. */
export interface GrantRow {
  readonly organization_id: string;
  readonly organization: string;
  readonly token_id: string;
  readonly kind: TokenKind;
  readonly name: string;
  readonly developer_operations: number;
  readonly protected_endpoint: number;
  readonly monitoring: number;
  readonly worker: number;
  readonly launch: number;
  readonly all_deployments: number;
  readonly expires_at_ms: number;
  readonly not_before_ms: number | null;
  readonly allowed_networks: string;
  /** `<id> <name>` of each, with commas between. */
  readonly deployments: string | null;
}

/** The columns of `GrantRow`, of `tokens t` and `organizations o`. */
export const GRANT_COLUMNS = `t.organization_id, o.name AS organization, t.token_id, t.kind, t.name,
  t.developer_operations, t.protected_endpoint, t.monitoring, t.worker, t.launch, t.all_deployments, t.expires_at_ms,
  t.not_before_ms, t.allowed_networks,
  (SELECT string_agg(td.deployment_id || ' ' || td.name, ',') FROM token_deployments td
   WHERE td.organization_id = t.organization_id AND td.token_id = t.token_id) AS deployments`;

export function toGrants(row: GrantRow): TokenGrants {
  return {
    developerOperations: row.developer_operations === 1,
    protectedEndpoint: row.protected_endpoint === 1,
    monitoring: row.monitoring === 1,
    worker: row.worker === 1,
    launch: row.launch === 1,
  };
}

/** Parses deployments, sorted by name. Ids and names contain no space or comma. */
export function toDeployments(text: string | null): { deploymentId: string; name: string }[] {
  const deployments = (text?.split(",") ?? []).map((deployment) => {
    const [deploymentId = "", name = ""] = deployment.split(" ");
    return { deploymentId, name };
  });
  return deployments.sort((one, other) => (one.name < other.name ? -1 : 1));
}

export interface TokenRow extends GrantRow {
  readonly description: string;
  readonly created_at_ms: number;
  readonly created_by: string;
  readonly user_id: string | null;
  readonly updated_at_ms: number;
  readonly last_used_at_ms: number | null;
  readonly last_used_address: string | null;
  readonly version: number;
  readonly hint: string;
  readonly revealable: number | boolean;
  readonly previous_valid_until_ms: number | null;
}

/** Conditions on `t` can be appended. */
export const SELECT_TOKEN = `
  SELECT ${GRANT_COLUMNS}, t.description, t.created_at_ms, t.created_by, t.user_id,
    t.updated_at_ms, t.last_used_at_ms, t.last_used_address, t.version, current_value.hint,
    current_value.sealed IS NOT NULL AS revealable,
    previous_value.valid_until_ms AS previous_valid_until_ms
  FROM tokens t
  JOIN organizations o ON o.organization_id = t.organization_id
  JOIN token_secrets current_value ON current_value.organization_id = t.organization_id || ''
    AND current_value.token_id = t.token_id AND current_value.valid_until_ms IS NULL
  LEFT JOIN token_secrets previous_value
    ON previous_value.organization_id = t.organization_id || ''
    AND previous_value.token_id = t.token_id AND previous_value.valid_until_ms IS NOT NULL
  WHERE t.organization_id = ?`;

export function toToken(row: TokenRow): TokenRecord {
  return {
    tokenId: row.token_id,
    organizationId: row.organization_id,
    organization: row.organization,
    kind: row.kind,
    name: row.name,
    description: row.description,
    access: toGrants(row),
    allDeployments: row.all_deployments === 1,
    deployments: toDeployments(row.deployments),
    expiresAtMs: row.expires_at_ms,
    notBeforeMs: row.not_before_ms ?? undefined,
    allowedNetworks: JSON.parse(row.allowed_networks) as string[],
    createdAtMs: row.created_at_ms,
    createdBy: row.created_by,
    userId: row.user_id ?? undefined,
    updatedAtMs: row.updated_at_ms,
    lastUsedAtMs: row.last_used_at_ms ?? undefined,
    lastUsedAddress: row.last_used_address ?? undefined,
    version: row.version,
    hint: row.hint,
    previousValidUntilMs: row.previous_valid_until_ms ?? undefined,
    revealable: Boolean(row.revealable),
  };
}

export function* getToken({
  organizationId,
  tokenId,
}: {
  readonly organizationId: string;
  readonly tokenId: string;
}): Operation<TokenRecord | undefined> {
  const [row] = yield* query<TokenRow>(
    `${SELECT_TOKEN} AND t.token_id = ? AND current_value.organization_id = t.organization_id`,
    organizationId,
    tokenId,
  );
  return row && toToken(row);
}
