/** The editable fields of a token: merging updates, and describing them for the audit log. */
import type { TokenFields, TokenGrants, TokenRecord, TokenUpdate } from "../../accounts/tokens.ts";

export function fieldsOf(token: TokenRecord): TokenFields {
  return { ...token, deployments: token.deployments.map(({ name }) => name) };
}

/** Applies an update. Undefined fields stay as they are; a `notBeforeMs` of null is removed. */
export function mergeFields(before: TokenRecord, update: TokenUpdate): TokenFields {
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
export function describeFields(
  fields: TokenFields,
  before?: TokenFields,
): { [field: string]: string } {
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
  const { developerOperations, protectedEndpoint, monitoring, worker } = access;
  const names = [
    developerOperations && "developer_operations",
    protectedEndpoint && "protected_endpoint",
    monitoring && "monitoring",
    worker && "worker",
  ];
  return names.filter(Boolean).join(" ");
}

function toTime(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
