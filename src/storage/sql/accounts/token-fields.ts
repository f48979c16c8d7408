/** The fields of a token that its owner sets: how they change, and how the audit log tells it. */
import type { TokenFields, TokenGrants, TokenRecord, TokenUpdate } from "../../accounts/tokens.ts";

export function fieldsOf(token: TokenRecord): TokenFields {
  return { ...token, deployments: token.deployments.map(({ name }) => name) };
}

/** What is undefined stays; a `notBeforeMs` of null goes. */
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

/** The fields as the audit log shows them; with `before`, only those that changed. */
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

/** Longer ones are cut: a list of deployments can be long. */
const MAX_VALUE_LENGTH = 1_000;

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
    Object.entries(all).map(([field, value]) => [field, value.slice(0, MAX_VALUE_LENGTH)]),
  );
}

function describeAccess(access: TokenGrants): string {
  const { developerOperations, protectedEndpoint, monitoring } = access;
  const names = [
    developerOperations && "developer_operations",
    protectedEndpoint && "protected_endpoint",
    monitoring && "monitoring",
  ];
  return names.filter(Boolean).join(" ");
}

function toTime(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
