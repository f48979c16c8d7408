/**
 * Protection against privilege escalation: what a credential may grant to
 * others. Nothing that is made with a token exceeds the token in any of these
 * respects:
 *
 *     access        none that the token lacks
 *     deployments   none that the token is not for
 *     networks      each within one of the token's, if it has any
 *     end           not after the token's
 *
 * This holds for every call that returns a value (create, rotate) or widens a
 * token (update). Without it, a leaked token, or one given out for a single
 * purpose, could create its own successor: for everything, from everywhere,
 * without an end.
 *
 * Opening a deployment to everybody grants what its authorization protected. So
 * only a token that may itself call a deployment can switch its authorization
 * off (`openableBy`). Any token that may create a deployment may create it
 * open: it protects nothing yet, and no token could name it before it exists.
 *
 * Code reads the secrets that it runs with. So what a member deploys, and what
 * runs with variables that a member has set, does not get a deployment's secrets
 * before somebody has confirmed it who may use them (`mayUseSecrets`). Neither does a machine that
 * a member joins: a token with worker or launch access is made, widened and rotated by who may use them, and
 * its owner is asked again when it registers.
 *
 * A person has more access than any token: their sessions reach every
 * deployment from every network and can always be opened again, while every
 * token expires. So no token may invite a person or raise a role. Removing
 * something (a role, a member, an invitation, a token, some of its lifetime) is
 * never an escalation.
 *
 * None of this binds a person who is signed in; only their role does.
 */
import { isWithin } from "../collections/networks.ts";
import { problem } from "../errors.ts";
import type { TokenFields, TokenKind } from "../storage/accounts/tokens.ts";
import { adminRequired, roleIn } from "./permissions.ts";
import type { Principal, TokenPrincipal } from "./principal.ts";
import { isForDeployments } from "./token-rules.ts";

/** The fields by which tokens are compared. */
export type TokenWorth = Pick<
  TokenFields,
  "access" | "allDeployments" | "deployments" | "allowedNetworks" | "expiresAtMs"
>;

/**
 * Checks that a principal may create, change or rotate a token of this kind;
 * `userId` owns a personal one. Throws ADMIN_REQUIRED for an organization
 * token, and ACCESS_DENIED for a personal token of somebody else.
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

/** The user id of a session or of a personal token; undefined for any other principal. */
function userIdOf(principal: Principal): string | undefined {
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
 * Throws ACCESS_DENIED when the caller is a token and would get the value of
 * one that exceeds it.
 */
export function checkNoClimbing(principal: Principal, token: TokenWorth): void {
  if (principal.kind === "token") {
    refuseExcess(excessOver(worthOf(principal), token), principal);
  }
}

/**
 * The same check for an update of a token. A token that already exceeds the
 * caller in more than its end cannot be changed at all. One that only ends
 * later may be renamed and restricted, but not extended.
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
  if (widens({ before, after })) {
    refuseExcess(excessOver(own, after), principal);
  }
}

/** Throws ACCESS_DENIED for any token; `deed` names what it cannot do. */
export function checkMadeByPerson(principal: Principal, deed: string): void {
  if (principal.kind === "token") {
    throw problem(
      "ACCESS_DENIED",
      `a token cannot ${deed}, because every token ends and is bound, and people are not: an admin who is signed in may do it`,
    );
  }
}

/**
 * Ids of the deployments whose authorization a principal may switch off;
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

/**
 * Whether a principal may use the secrets of an organization's deployments:
 * what it deploys and which variables it sets decide who reads them. Admins
 * and the tokens of the organization may, and personal tokens of admins.
 */
export function mayUseSecrets(principal: Principal, organizationId: string): boolean {
  const isOwnToken = principal.kind === "token" && principal.tokenKind === "organization";
  return isOwnToken || roleIn(principal, organizationId) === "admin";
}

/**
 * Throws ACCESS_DENIED when the caller would get or widen a token with worker or launch access, whose
 * machines are given the secrets of its deployments, and may not use them.
 */
export function checkHandsOutSecrets(
  principal: Principal,
  { organizationId, access }: { readonly organizationId: string } & Pick<TokenWorth, "access">,
): void {
  if ((access.worker || access.launch) && !mayUseSecrets(principal, organizationId)) {
    throw problem(
      "ACCESS_DENIED",
      "a token with worker or launch access gives machines the secrets of its deployments, which you may not use: an admin of the organization makes it",
    );
  }
}

/** Whether an update lets a token do more than before, or for longer. */
export function widens({
  before,
  after,
}: {
  readonly before: TokenWorth;
  readonly after: TokenWorth;
}): boolean {
  return excessOver(before, after).length > 0;
}

function worthOf(token: TokenPrincipal): TokenWorth {
  return { ...token, deployments: token.deployments.map(({ name }) => name) };
}

type Excess =
  | "developer operations"
  | "protected endpoint"
  | "monitoring"
  | "worker"
  | "launch"
  | Respect;
type Respect = "deployments" | "networks" | "end";

/** Lists the respects in which a token exceeds another. */
function excessOver(own: TokenWorth, wanted: TokenWorth): Excess[] {
  const names = new Set(own.deployments);
  const opensMore =
    isForDeployments(wanted.access) &&
    !own.allDeployments &&
    (wanted.allDeployments || wanted.deployments.some((name) => !names.has(name)));
  const found: readonly (Excess | false)[] = [
    wanted.access.developerOperations && !own.access.developerOperations && "developer operations",
    wanted.access.protectedEndpoint && !own.access.protectedEndpoint && "protected endpoint",
    wanted.access.monitoring && !own.access.monitoring && "monitoring",
    wanted.access.worker && !own.access.worker && "worker",
    wanted.access.launch && !own.access.launch && "launch",
    opensMore && isForDeployments(own.access) && "deployments",
    !keepsNetworks(wanted.allowedNetworks, own.allowedNetworks) && "networks",
    wanted.expiresAtMs > own.expiresAtMs && "end",
  ];
  return found.filter((each) => each !== false);
}

/** Whether every network of `wanted` lies within one of `own`. */
function keepsNetworks(wanted: readonly string[], own: readonly string[]): boolean {
  return (
    own.length === 0 || (wanted.length > 0 && wanted.every((network) => isWithin(network, own)))
  );
}

const SAID: Readonly<Record<Excess, string>> = {
  "developer operations": "developer operations access",
  "protected endpoint": "protected endpoint access",
  monitoring: "monitoring access",
  worker: "worker access",
  launch: "launch access",
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
