/** Creates, lists, changes and deletes tokens. */
import type { Accounts } from "../../accounts/accounts.ts";
import type { OrganizationRecord } from "../../accounts/organizations.ts";
import type { Page } from "../../accounts/page.ts";
import type {
  TokenFields,
  TokenGrants,
  TokenRecord,
  Tokens,
  TokenUpdate,
} from "../../accounts/tokens.ts";
import { type Operation, pieces, placeholders, query, type Value } from "../operation.ts";
import { isCredentialThere } from "./acting-credential.ts";
import { record } from "./audit.ts";
import { announce } from "./changes.ts";
import { keepNames } from "./kept-names.ts";
import { lockOrganization } from "./locks.ts";
import { toPage } from "./rows.ts";
import { insertSecret } from "./secrets.ts";
import { getToken, SELECT_TOKEN, type TokenRow, toToken } from "./token-rows.ts";

/** Names of deployments in one statement. */
const MAX_NAMES_PER_STATEMENT = 100;

type CreateOutcome = Awaited<ReturnType<Tokens["createToken"]>>;

export function* createToken(
  parameters: Parameters<Accounts["createToken"]>[0],
): Operation<CreateOutcome> {
  const organization = yield* lockOrganization(parameters.organizationId);
  return organization ? yield* addToken(organization, parameters) : { outcome: "not_member" };
}

/** Creates a token. Requires the organization's lock. */
export function* addToken(
  organization: OrganizationRecord,
  token: Omit<Parameters<Accounts["createToken"]>[0], "organizationId"> & {
    /** How it was created, for the audit log. */
    readonly origin?: string;
  },
): Operation<CreateOutcome> {
  const { organizationId } = organization;
  const { tokenId, kind, userId, fields, secret, nowMs, by } = token;
  const isTheirs = kind !== "personal" || (yield* isMember(organizationId, userId));
  if (!isTheirs || !(yield* isCredentialThere(token, organizationId))) {
    return { outcome: "not_member" };
  }
  if (fields.access.monitoring && !organization.monitoringEnabled) {
    return { outcome: "monitoring_disabled" };
  }
  const names = yield* unknownDeployments(organizationId, fields.deployments);
  if (names.length > 0) {
    return { outcome: "unknown_deployments", names };
  }
  const theirs = kind === "personal" ? yield* countPersonalTokens(organizationId, userId) : 0;
  if (theirs >= token.personalLimit) {
    return { outcome: "personal_limit" };
  }
  const [there] = yield* query<{ count: number }>(
    "SELECT count(*) AS count FROM tokens WHERE organization_id = ?",
    organizationId,
  );
  if ((there?.count ?? 0) >= token.limit) {
    return { outcome: "limit" };
  }
  yield* query(
    `INSERT INTO tokens (organization_id, token_id, kind, user_id, name, description,
       developer_operations, protected_endpoint, monitoring, worker, launch, all_deployments,
       expires_at_ms, not_before_ms, allowed_networks, created_at_ms, created_by, updated_at_ms,
       version)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)`,
    organizationId,
    tokenId,
    kind,
    userId,
    ...valuesOf(fields),
    nowMs,
    by.name,
    nowMs,
  );
  yield* setDeployments({ organizationId, tokenId }, fields.deployments);
  yield* insertSecret(organization, { tokenId, kind, version: 1 }, secret);
  const origin = token.origin === undefined ? undefined : { origin: token.origin };
  yield* record(token, organizationId, {
    action: "token.create",
    subjectId: tokenId,
    subject: fields.name,
    details: { kind, ...describeFields(fields), ...origin },
  });
  const created = yield* readBack({ organizationId, tokenId });
  yield* announce(nowMs, { kind: "token", id: tokenId });
  return { outcome: "created", token: created };
}

/** The values in the order of the columns, from the name to the networks. */
function valuesOf(fields: TokenFields): Value[] {
  const { access } = fields;
  return [
    fields.name,
    fields.description,
    access.developerOperations,
    access.protectedEndpoint,
    access.monitoring,
    access.worker,
    access.launch,
    fields.allDeployments,
    fields.expiresAtMs,
    fields.notBeforeMs,
    JSON.stringify(fields.allowedNetworks),
  ];
}

function* isMember(organizationId: string, userId: string | undefined): Operation<boolean> {
  const rows = yield* query(
    "SELECT user_id FROM memberships WHERE organization_id = ? AND user_id = ?",
    organizationId,
    userId,
  );
  return rows.length > 0;
}

function* countPersonalTokens(
  organizationId: string,
  userId: string | undefined,
): Operation<number> {
  const [theirs] = yield* query<{ count: number }>(
    `SELECT count(*) AS count FROM tokens
     WHERE user_id = ? AND organization_id = ? AND kind = 'personal'`,
    userId,
    organizationId,
  );
  return theirs?.count ?? 0;
}

function* readBack(key: {
  readonly organizationId: string;
  readonly tokenId: string;
}): Operation<TokenRecord> {
  const token = yield* getToken(key);
  if (token === undefined) {
    throw new Error(`token ${key.tokenId} has no current value`);
  }
  return token;
}

export function* listTokens({
  organizationId,
  viewerId,
  kind,
  limit,
  after,
}: Parameters<Accounts["listTokens"]>[0]): Operation<Page<TokenRecord>> {
  const own = viewerId === undefined ? "" : " OR t.user_id = ?";
  const rows = yield* query<TokenRow>(
    `${SELECT_TOKEN} AND (t.kind = 'organization'${own})
     ${kind === undefined ? "" : "AND t.kind = ?"} ${after === undefined ? "" : "AND t.token_id < ?"}
     ORDER BY t.token_id DESC LIMIT ?`,
    organizationId,
    ...[viewerId, kind, after].filter((value) => value !== undefined),
    limit + 1,
  );
  return toPage(rows.map(toToken), limit, ({ tokenId }) => tokenId);
}

export function* listPersonalTokens({
  userId,
  nowMs,
  limit,
}: Parameters<Accounts["listPersonalTokens"]>[0]): Operation<
  Awaited<ReturnType<Tokens["listPersonalTokens"]>>
> {
  const organizations = yield* query<{ organization_id: string; count: number }>(
    `SELECT organization_id, count(*) AS count FROM tokens
     WHERE user_id = ? AND kind = 'personal' AND expires_at_ms > ?
     GROUP BY organization_id ORDER BY organization_id`,
    userId,
    nowMs,
  );
  const tokens: TokenRecord[] = [];
  for (const { organization_id: organizationId } of organizations) {
    if (tokens.length < limit) {
      const rows = yield* query<TokenRow>(
        `${SELECT_TOKEN} AND t.user_id = ? AND t.kind = 'personal' AND t.expires_at_ms > ?
         ORDER BY t.token_id DESC LIMIT ?`,
        organizationId,
        userId,
        nowMs,
        limit - tokens.length,
      );
      tokens.push(...rows.map(toToken));
    }
  }
  return { count: organizations.reduce((sum, { count }) => sum + Number(count), 0), tokens };
}

export function* updateToken(
  parameters: Parameters<Accounts["updateToken"]>[0],
): Operation<Awaited<ReturnType<Tokens["updateToken"]>>> {
  const { organizationId, tokenId, version, nowMs } = parameters;
  const organization = yield* lockOrganization(organizationId);
  const before = yield* getToken({ organizationId, tokenId });
  if (organization === undefined || before === undefined) {
    return { outcome: "not_found" };
  }
  if (version !== undefined && version !== before.version) {
    return { outcome: "version_conflict" };
  }
  if (parameters.fields.access?.monitoring && !organization.monitoringEnabled) {
    return { outcome: "monitoring_disabled" };
  }
  const names = yield* unknownDeployments(organizationId, parameters.fields.deployments ?? []);
  if (names.length > 0) {
    return { outcome: "unknown_deployments", names };
  }
  const fields = mergeFields(before, parameters.fields);
  yield* query(
    `UPDATE tokens SET name = ?, description = ?, developer_operations = ?,
       protected_endpoint = ?, monitoring = ?, worker = ?, launch = ?, all_deployments = ?,
       expires_at_ms = ?, not_before_ms = ?, allowed_networks = ?, updated_at_ms = ?, version = version + 1
     WHERE organization_id = ? AND token_id = ?`,
    ...valuesOf(fields),
    nowMs,
    organizationId,
    tokenId,
  );
  if (parameters.fields.deployments) {
    yield* setDeployments({ organizationId, tokenId }, fields.deployments);
  }
  const token = yield* readBack({ organizationId, tokenId });
  yield* record(parameters, organizationId, {
    action: "token.update",
    subjectId: tokenId,
    subject: token.name,
    details: describeFields(fieldsOf(token), fieldsOf(before)),
  });
  yield* announce(nowMs, { kind: "token", id: tokenId });
  return { outcome: "updated", token };
}

export function* deleteToken(
  parameters: Parameters<Accounts["deleteToken"]>[0],
): Operation<boolean> {
  const { organizationId, tokenId, nowMs } = parameters;
  yield* lockOrganization(organizationId);
  const [deleted] = yield* query<{ name: string; kind: string }>(
    "DELETE FROM tokens WHERE organization_id = ? AND token_id = ? RETURNING name, kind",
    organizationId,
    tokenId,
  );
  if (deleted === undefined) {
    return false;
  }
  for (const table of ["token_deployments", "token_secrets"]) {
    yield* query(
      `DELETE FROM ${table} WHERE organization_id = ? AND token_id = ?`,
      organizationId,
      tokenId,
    );
  }
  yield* keepNames(organizationId, [{ id: tokenId, ...deleted }], nowMs);
  yield* record(parameters, organizationId, {
    action: "token.delete",
    subjectId: tokenId,
    subject: deleted.name,
    details: { kind: deleted.kind },
  });
  yield* announce(nowMs, { kind: "token", id: tokenId });
  return true;
}

// The deployments that a token is limited to.

/** Returns the names without a deployment in the organization. */
function* unknownDeployments(
  organizationId: string,
  names: readonly string[],
): Operation<string[]> {
  const known = new Set<string>();
  for (const piece of pieces(names, MAX_NAMES_PER_STATEMENT)) {
    const rows = yield* query<{ name: string }>(
      `SELECT name FROM deployments
       WHERE organization_id = ? AND name IN ${placeholders(1, piece.length)}`,
      organizationId,
      ...piece,
    );
    for (const { name } of rows) {
      known.add(name);
    }
  }
  return names.filter((name) => !known.has(name));
}

/** Replaces the deployments of a token; all of them exist. */
function* setDeployments(
  { organizationId, tokenId }: { readonly organizationId: string; readonly tokenId: string },
  names: readonly string[],
): Operation<void> {
  yield* query(
    "DELETE FROM token_deployments WHERE organization_id = ? AND token_id = ?",
    organizationId,
    tokenId,
  );
  for (const piece of pieces([...new Set(names)], MAX_NAMES_PER_STATEMENT)) {
    yield* query(
      `INSERT INTO token_deployments (organization_id, token_id, deployment_id, name)
       SELECT organization_id, ?, deployment_id, name FROM deployments
       WHERE organization_id = ? AND name IN ${placeholders(1, piece.length)}`,
      tokenId,
      organizationId,
      ...piece,
    );
  }
}

/** The editable fields of a token: merging updates, and describing them for the audit log. */
function fieldsOf(token: TokenRecord): TokenFields {
  return { ...token, deployments: token.deployments.map(({ name }) => name) };
}

/** Applies an update. Undefined fields stay as they are; a `notBeforeMs` of null is removed. */
function mergeFields(before: TokenRecord, update: TokenUpdate): TokenFields {
  const fields = fieldsOf(before);
  const { notBeforeMs = fields.notBeforeMs } = update;
  return {
    name: update.name ?? fields.name,
    description: update.description ?? fields.description,
    access: update.access ?? fields.access,
    allDeployments: update.allDeployments ?? fields.allDeployments,
    deployments: update.deployments ?? fields.deployments,
    expiresAtMs: update.expiresAtMs ?? fields.expiresAtMs,
    notBeforeMs: notBeforeMs ?? undefined,
    allowedNetworks: update.allowedNetworks ?? fields.allowedNetworks,
  };
}

/** Describes fields for the audit log; with `before`, only the changed ones. */
function describeFields(fields: TokenFields, before?: TokenFields): { [field: string]: string } {
  const old = before && describe(before);
  return Object.fromEntries(
    Object.entries(describe(fields)).filter(([field, value]) =>
      old ? old[field] !== value : value !== "",
    ),
  );
}

/** Value in an audit event, cut beyond: a list of deployments can be long. */
const MAX_AUDITED_VALUE_CHARACTERS = 1_000;

function describe(fields: TokenFields): { [field: string]: string } {
  const { name, description, access, allDeployments, deployments, notBeforeMs } = fields;
  const all = {
    name,
    description,
    access: describeAccess(access),
    deployments: allDeployments ? "all" : [...deployments].sort().join(" "),
    expires_at: toTime(fields.expiresAtMs),
    not_before: notBeforeMs === undefined ? "" : toTime(notBeforeMs),
    allowed_networks: fields.allowedNetworks.join(" "),
  };
  return Object.fromEntries(
    Object.entries(all).map(([field, value]) => [
      field,
      value.slice(0, MAX_AUDITED_VALUE_CHARACTERS),
    ]),
  );
}

function describeAccess(access: TokenGrants): string {
  const { developerOperations, protectedEndpoint, monitoring, worker, launch } = access;
  const names = [
    developerOperations && "developer_operations",
    protectedEndpoint && "protected_endpoint",
    monitoring && "monitoring",
    worker && "worker",
    launch && "launch",
  ];
  return names.filter(Boolean).join(" ");
}

function toTime(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
