/** Conversion of principals to messages. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { PrincipalKind, type PrincipalSchema } from "../../gen/tessera/v1/auth_pb.js";
import type { Principal, SessionPrincipal, TokenPrincipal } from "../auth/principal.ts";
import type { Organizations } from "../storage/accounts/organizations.ts";
import { timestampFromMs } from "../time/messages.ts";
import { ROLE, toOrganizationMessage } from "./organization/messages.ts";
import { toAccessWords } from "./token/messages.ts";

type PrincipalInit = MessageInitShape<typeof PrincipalSchema>;

type Lookup = Pick<Organizations, "findOrganization">;

/** The caller as a message; a promise if its organizations have to be looked up. */
export function toPrincipalMessage(
  principal: Principal,
  accounts: Lookup,
): PrincipalInit | Promise<PrincipalInit> {
  switch (principal.kind) {
    case "session":
      return fromSession(principal, accounts);
    case "token":
      return fromToken(principal);
    case "shared":
      return { kind: PrincipalKind.SHARED_TOKEN };
    case "anonymous":
      return { kind: PrincipalKind.ANONYMOUS };
  }
}

async function fromSession(principal: SessionPrincipal, accounts: Lookup): Promise<PrincipalInit> {
  const { memberships, userId, email, displayName, operator, expiresAtMs } = principal;
  const found = memberships.map(async ({ organizationId, role }) => {
    const organization = await accounts.findOrganization({ organizationId });
    return organization && toOrganizationMessage(organization, role);
  });
  const organizations = (await Promise.all(found)).filter((one) => one !== undefined);
  return {
    kind: PrincipalKind.SESSION,
    userId,
    email,
    displayName,
    operator,
    expiresAt: timestampFromMs(expiresAtMs),
    organizations: organizations.sort((a, b) => ((a.name ?? "") < (b.name ?? "") ? -1 : 1)),
  };
}

function fromToken(principal: TokenPrincipal): PrincipalInit {
  const { tokenKind, access, user } = principal;
  return {
    kind: kindOf(tokenKind, access.monitoring),
    organization: principal.organization,
    ...(user !== undefined && { userId: user.userId, email: user.email, role: ROLE[user.role] }),
    tokenId: principal.tokenId,
    tokenName: principal.tokenName,
    access: toAccessWords(access),
    allDeployments: principal.allDeployments,
    deployments: principal.deployments.map(({ name }) => name),
    expiresAt: timestampFromMs(principal.expiresAtMs),
  };
}

function kindOf(kind: TokenPrincipal["tokenKind"], monitoring: boolean): PrincipalKind {
  if (monitoring) {
    return PrincipalKind.MONITORING_TOKEN;
  }
  return kind === "personal" ? PrincipalKind.PERSONAL_TOKEN : PrincipalKind.ORGANIZATION_TOKEN;
}
