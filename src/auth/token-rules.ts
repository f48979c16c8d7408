/** Validation of a token's fields. */
import { networkProblem } from "../collections/networks.ts";
import { type FieldViolation, problem } from "../errors.ts";
import type { TokenFields, TokenKind } from "../storage/accounts/tokens.ts";
import { faultOfName } from "./names.ts";
import type { TokenLetter } from "./token-format.ts";

/** Name of a token. */
export const MAX_TOKEN_NAME_CHARACTERS = 100;
/** Description of a token. */
export const MAX_TOKEN_DESCRIPTION_CHARACTERS = 1_000;
/** Deployments that a token may be limited to. */
export const MAX_TOKEN_DEPLOYMENTS = 1_000;
/** Networks that a token may be limited to. */
export const MAX_TOKEN_NETWORKS = 100;

/** Latest expiry of a token: the last moment that a date of four digits can name. */
const MAX_TOKEN_EXPIRY_MS = 253_402_300_799_999;

export const NO_ACCESS: TokenFields["access"] = {
  developerOperations: false,
  protectedEndpoint: false,
  monitoring: false,
  worker: false,
  launch: false,
};

interface TokenRules {
  readonly kind: TokenKind;
  readonly nowMs: number;
  /**
   * The fields that an update sets. Only these are checked against the clock:
   * an expired token may be renamed.
   */
  readonly changed?: ReadonlySet<keyof TokenFields>;
}

/**
 * Checks the complete fields of a token; for an update, including the fields
 * that stay. Throws REQUEST_INVALID with every broken rule, by the request's
 * field names.
 */
export function checkTokenFields(fields: TokenFields, rules: TokenRules): void {
  const violations = [
    ...nameViolations(fields),
    ...accessViolations(fields, rules),
    ...deploymentViolations(fields),
    ...timeViolations(fields, rules),
    ...networkViolations(fields),
  ];
  const [first] = violations;
  if (first !== undefined) {
    const more = violations.length > 1 ? ` (and ${violations.length - 1} more)` : "";
    throw problem("REQUEST_INVALID", `${first.field}: ${first.description}${more}`, { violations });
  }
}

/** The letter in the value of a token of this kind. */
export function tokenLetter(kind: TokenKind, access: TokenFields["access"]): TokenLetter {
  if (access.monitoring) {
    return "m";
  }
  return kind === "personal" ? "p" : "o";
}

function nameViolations({ name, description }: TokenFields): FieldViolation[] {
  const violations: FieldViolation[] = [];
  const length = [...name].length;
  if (name.trim() === "" || length > MAX_TOKEN_NAME_CHARACTERS) {
    violations.push({
      field: "name",
      description: `must have 1 to ${MAX_TOKEN_NAME_CHARACTERS} characters`,
    });
  } else if (/\p{Cc}/u.test(name)) {
    violations.push({ field: "name", description: "must have no control characters" });
  }
  if ([...description].length > MAX_TOKEN_DESCRIPTION_CHARACTERS) {
    violations.push({ field: "description", description: "must have at most 1,000 characters" });
  }
  return violations;
}

function accessViolations({ access }: TokenFields, { kind }: TokenRules): FieldViolation[] {
  const { monitoring, worker, launch } = access;
  const given = Object.values(access).filter(Boolean).length;
  if (given === 0) {
    return [
      {
        field: "access",
        description:
          "must be at least one of developer_operations and protected_endpoint, or monitoring, worker or launch alone",
      },
    ];
  }
  const alone = (monitoring && "monitoring") || (worker && "worker") || (launch && "launch");
  if (alone && given > 1) {
    return [{ field: "access", description: `${alone} stands alone: make two tokens` }];
  }
  if (monitoring && kind === "personal") {
    return [{ field: "access", description: "monitoring is for organization tokens" }];
  }
  return [];
}

/** Whether a token with this access names deployments. */
export function isForDeployments(access: TokenFields["access"]): boolean {
  return access.protectedEndpoint || access.worker || access.launch;
}

function deploymentViolations(fields: TokenFields): FieldViolation[] {
  const { access, allDeployments, deployments } = fields;
  if (!isForDeployments(access)) {
    const field = allDeployments ? "all_deployments" : "deployments";
    return allDeployments || deployments.length > 0
      ? [{ field, description: "is for tokens with protected_endpoint, worker or launch access" }]
      : [];
  }
  if (allDeployments === deployments.length > 0) {
    return [
      {
        field: "deployments",
        description: allDeployments
          ? "must be empty where all_deployments is set"
          : "must name a deployment, or set all_deployments: protected_endpoint, worker and launch access are for deployments",
      },
    ];
  }
  if (deployments.length > MAX_TOKEN_DEPLOYMENTS) {
    return [{ field: "deployments", description: "must be at most 1,000 names" }];
  }
  return deployments.flatMap((name, index) => {
    const field = `deployments.${index}`;
    if (faultOfName(name) !== undefined) {
      return { field, description: "must be the name of a deployment" };
    }
    return deployments.indexOf(name) < index ? { field, description: "is there twice" } : [];
  });
}

function timeViolations(fields: TokenFields, { nowMs, changed }: TokenRules): FieldViolation[] {
  const { expiresAtMs, notBeforeMs } = fields;
  const violations: FieldViolation[] = [];
  const isChanged = (field: keyof TokenFields): boolean => changed?.has(field) ?? true;
  if (isChanged("expiresAtMs") && !(expiresAtMs > nowMs && expiresAtMs <= MAX_TOKEN_EXPIRY_MS)) {
    violations.push({ field: "expires_at", description: "must be in the future" });
  }
  if (
    notBeforeMs !== undefined &&
    (isChanged("notBeforeMs") || isChanged("expiresAtMs")) &&
    !(notBeforeMs < expiresAtMs)
  ) {
    violations.push({ field: "not_before", description: "must be before expires_at" });
  }
  return violations;
}

function networkViolations({ allowedNetworks }: TokenFields): FieldViolation[] {
  if (allowedNetworks.length > MAX_TOKEN_NETWORKS) {
    return [
      { field: "allowed_networks", description: `must be at most ${MAX_TOKEN_NETWORKS} networks` },
    ];
  }
  return allowedNetworks.flatMap((network, index) => {
    const description = networkProblem(network);
    return description === undefined ? [] : { field: `allowed_networks.${index}`, description };
  });
}
