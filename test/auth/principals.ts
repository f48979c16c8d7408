/** Principals of every kind, in the organization `acme`. */
import type { SessionPrincipal, TokenPrincipal } from "../../src/auth/principal.ts";
import { NO_ACCESS } from "../../src/auth/token-rules.ts";
import type { Role } from "../../src/storage/accounts/people.ts";

export const DEPLOYMENT = { deploymentId: "deployment-id", name: "summarizer" };
export const OTHER_DEPLOYMENT = { deploymentId: "other-deployment-id", name: "translator" };

/** A person with this role in `acme`, or with none. */
export function session(role?: Role): SessionPrincipal {
  return {
    kind: "session",
    sessionId: "session-id",
    userId: "ada-id",
    email: "ada@example.com",
    displayName: "Ada",
    memberships:
      role === undefined ? [] : [{ organizationId: "acme-id", organization: "acme", role }],
    operator: false,
    authenticatedAtMs: 0,
    expiresAtMs: Number.MAX_SAFE_INTEGER,
  };
}

/** A token of `acme`; one with endpoint access is for `DEPLOYMENT`, or for all. */
export function token(
  tokenKind: "personal" | "organization",
  access: "developer" | "endpoint" | "both" | "monitoring",
  {
    role = "member",
    all = false,
    networks = [],
  }: {
    readonly role?: Role;
    readonly all?: boolean;
    readonly networks?: readonly string[];
  } = {},
): TokenPrincipal {
  const protectedEndpoint = access === "endpoint" || access === "both";
  return {
    kind: "token",
    tokenId: "token-id",
    generation: 1,
    tokenKind,
    tokenName: "laptop",
    organizationId: "acme-id",
    organization: "acme",
    access: {
      ...NO_ACCESS,
      developerOperations: access === "developer" || access === "both",
      protectedEndpoint,
      monitoring: access === "monitoring",
    },
    allDeployments: protectedEndpoint && all,
    deployments: protectedEndpoint && !all ? [DEPLOYMENT] : [],
    expiresAtMs: Number.MAX_SAFE_INTEGER,
    allowedNetworks: networks,
    user:
      tokenKind === "personal" ? { userId: "ada-id", email: "ada@example.com", role } : undefined,
  };
}
