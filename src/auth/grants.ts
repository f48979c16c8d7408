/**
 * What a credential may give to others. No climbing: whatever is made with a
 * token is worth no more than the token, in any of these respects.
 *
 *     access        none that the token lacks
 *     deployments   none that the token is not for
 *     networks      each within one of the token's, if it has any
 *     end           not after the token's
 *
 * It holds for each call that hands out a value (creating, rotating) or makes
 * one worth more (updating). Without it, a token that leaked, or that somebody
 * was given for one purpose, would make its own successor: one for
 * everything, from everywhere, for good.
 *
 * A deployment that anybody may call gives everybody what its authorization
 * kept from them. So only a token that may itself call a deployment switches
 * its authorization off (`openableBy`). A new deployment may be made open by
 * any token that may make one: nothing in it was ever kept from anybody, and
 * no token could name it before it is there.
 *
 * A person is worth more than any token: their sessions reach every
 * deployment, from every network, and are opened again and again, while every
 * token ends. So no token lets a person in or gives one a higher role. To take
 * away (a role, a member, an invitation, a token, some of its life) is no
 * climbing.
 *
 * A person who is signed in is bound by none of this, only by their role.
 */
import { problem } from "../errors.ts";
import type { TokenFields, TokenKind } from "../storage/accounts/tokens.ts";
import { isWithin } from "./networks.ts";
import { adminRequired, roleIn } from "./permissions.ts";
import type { Principal, TokenPrincipal } from "./principal.ts";

/** What counts when tokens are compared. */
export type TokenWorth = Pick<
  TokenFields,
  "access" | "allDeployments" | "deployments" | "allowedNetworks" | "expiresAtMs"
>;

/**
 * Whether a principal may create, change or rotate a token of this kind, whose
 * is `userId` when it is personal. Throws ADMIN_REQUIRED for an organization
 * token, and ACCESS_DENIED for a personal one of somebody else.
 */
export function checkTokenOwner(
  principal: Principal,
  token: {
    readonly kind: TokenKind;
    readonly organizationId: string;
    readonly userId: string | undefined;
  },
): void {
  if (token.kind === "organization") {
    if (roleIn(principal, token.organizationId) !== "admin") {
      throw adminRequired();
    }
    return;
  }
  const userId = userIdOf(principal);
  if (userId === undefined || userId !== token.userId) {
    throw problem(
      "ACCESS_DENIED",
      "a personal token belongs to a person: only they, or a personal token of theirs, may do this",
    );
  }
}

/** The person of a session or of a personal token. */
export function userIdOf(principal: Principal): string | undefined {
  switch (principal.kind) {
    case "session":
      return principal.userId;
    case "token":
      return principal.user?.userId;
    default:
      return undefined;
  }
}

/**
 * Throws ACCESS_DENIED when the caller is a token, and the one whose value it
 * would get is worth more.
 */
export function checkNoClimbing(principal: Principal, token: TokenWorth): void {
  if (principal.kind === "token") {
    refuseExcess(excessOver(worthOf(principal), token), principal);
  }
}

/**
 * The same for a change of a token. What is worth more already, but for its
 * end, is not changed at all. One that lives longer than the caller may be
 * renamed and restricted, and given no more than it has.
 */
export function checkNoClimbingUpdate(
  principal: Principal,
  { before, after }: { readonly before: TokenWorth; readonly after: TokenWorth },
): void {
  if (principal.kind !== "token") {
    return;
  }
  const own = worthOf(principal);
  const { expiresAtMs } = own;
  refuseExcess(excessOver(own, { ...before, expiresAtMs }), principal);
  if (excessOver(before, after).length > 0) {
    refuseExcess(excessOver(own, after), principal);
  }
}

/** Throws ACCESS_DENIED for a token, whatever it is good for; `deed` is what it cannot do. */
export function checkMadeByPerson(principal: Principal, deed: string): void {
  if (principal.kind === "token") {
    throw problem(
      "ACCESS_DENIED",
      `a token cannot ${deed}, because every token ends and is bound, and people are not: an admin who is signed in may do it`,
    );
  }
}

/**
 * The deployments whose authorization a principal may switch off, by id;
 * undefined: all of the organization's.
 */
export function openableBy(principal: Principal): readonly string[] | undefined {
  if (principal.kind !== "token") {
    return undefined;
  }
  const { access, allDeployments, deployments } = principal;
  if (!access.protectedEndpoint) {
    return [];
  }
  return allDeployments ? undefined : deployments.map(({ deploymentId }) => deploymentId);
}

function worthOf(token: TokenPrincipal): TokenWorth {
  return { ...token, deployments: token.deployments.map(({ name }) => name) };
}

type Excess = "developer operations" | "protected endpoint" | "monitoring" | Respect;
type Respect = "deployments" | "networks" | "end";

/** In which respects a token is worth more than another. */
function excessOver(own: TokenWorth, wanted: TokenWorth): Excess[] {
  const names = new Set(own.deployments);
  const opensMore =
    wanted.access.protectedEndpoint &&
    !own.allDeployments &&
    (wanted.allDeployments || wanted.deployments.some((name) => !names.has(name)));
  const found: readonly (Excess | false)[] = [
    wanted.access.developerOperations && !own.access.developerOperations && "developer operations",
    wanted.access.protectedEndpoint && !own.access.protectedEndpoint && "protected endpoint",
    wanted.access.monitoring && !own.access.monitoring && "monitoring",
    opensMore && own.access.protectedEndpoint && "deployments",
    !keepsNetworks(wanted.allowedNetworks, own.allowedNetworks) && "networks",
    wanted.expiresAtMs > own.expiresAtMs && "end",
  ];
  return found.filter((each) => each !== false);
}

/** Whether a token that may be used from `wanted` can be used only where one of `own` can. */
function keepsNetworks(wanted: readonly string[], own: readonly string[]): boolean {
  return (
    own.length === 0 || (wanted.length > 0 && wanted.every((network) => isWithin(network, own)))
  );
}

const SAID: Readonly<Record<Excess, string>> = {
  "developer operations": "developer operations access",
  "protected endpoint": "protected endpoint access",
  monitoring: "monitoring access",
  deployments: "other deployments",
  networks: "other networks",
  end: "a later end",
};

function refuseExcess(excess: readonly Excess[], { expiresAtMs }: TokenPrincipal): void {
  if (excess.length === 0) {
    return;
  }
  const end = excess.includes("end") ? new Date(expiresAtMs).toISOString() : undefined;
  const advice = end === undefined ? "" : `its own end is ${end}: choose an earlier one, or `;
  throw problem(
    "ACCESS_DENIED",
    `a token cannot make or change one that is worth more than itself (${excess.map((each) => SAID[each]).join(", ")}): ${advice}a person who is signed in may do it`,
    {
      ...(end !== undefined && {
        violations: [{ field: "expires_at", description: `must not be after ${end}` }],
      }),
    },
  );
}
