/**
 * Authorization: which principals have each kind of access that a method of the
 * API requires (access.proto). Everything that is not allowed here is denied.
 *
 *     access         session           token                              nobody
 *     public         yes               yes                                yes
 *     authenticated  yes               yes                                no
 *     session        yes               no                                 no
 *     developer      of a member       with developer operations          no
 *     admin          of an admin       an admin's, with developer ops     no
 *     endpoint       of a member       with protected endpoint, for it    while it is open
 *     monitoring     no                with monitoring                    no
 *     operator       of an operator    no                                 no
 *     worker         no                with worker; the method checks for which deployment    no
 *     launch         no                with launch; the method checks for which deployment    no
 *
 * The access of a task (task-access.ts) is not among these: it reads its task as its maker would.
 *
 * A personal token acts as its owner, with the owner's current role. An
 * organization token represents nobody: it is never an admin, even when an
 * admin created it. To a caller from outside, an organization and everything in
 * it does not exist ("not found"); "denied" is only for what the caller may
 * know about. `deploymentUnknown` is the one answer for deployments.
 */
import { Access } from "../../gen/tessera/v1/access_pb.js";
import { type Problem, problem } from "../errors.ts";
import type { Role } from "../storage/accounts/people.ts";
import type { Principal, SessionPrincipal, TokenPrincipal } from "./principal.ts";
import { NO_ACCESS } from "./token-rules.ts";

/** The facts of a decision other than the principal. */
export interface Situation {
  /**
   * The organization that the request is about. Without it, only the credential
   * itself is checked.
   */
  readonly organizationId?: string;
  /** The called deployment, for endpoint access; absent when it was not found. */
  readonly deployment?: {
    readonly deploymentId: string;
    readonly organizationId: string;
    readonly organization: string;
    readonly name: string;
    readonly authorization: boolean;
  };
  /**
   * Default false. True for `tessera serve`, which has no people and no
   * organizations: everyone (or everyone with the shared token) may call
   * methods that require only a valid credential or a deployment.
   */
  readonly standalone?: boolean;
}

/**
 * Returns when the principal has this access. Throws TOKEN_MISSING for a
 * missing credential, TOKEN_INVALID for a session that has ended, SIGN_IN_REQUIRED when a person is required,
 * ADMIN_REQUIRED when an admin is required, ACCESS_DENIED when the credential
 * lacks the access, OPERATOR_REQUIRED when an operator is required, and ORGANIZATION_NOT_FOUND or DEPLOYMENT_NOT_FOUND for what
 * the principal must not know about.
 */
export function authorize(principal: Principal, access: Access, situation: Situation = {}): void {
  if (access === Access.PUBLIC) {
    return;
  }
  if (access === Access.ENDPOINT) {
    authorizeEndpoint(principal, situation);
    return;
  }
  if (situation.standalone === true) {
    if (access !== Access.AUTHENTICATED) {
      throw problem("ACCESS_DENIED", "this server has no people, organizations or tokens");
    }
    return;
  }
  const known = signedIn(principal);
  switch (access) {
    case Access.AUTHENTICATED:
      return;
    case Access.SESSION:
      if (known.kind !== "session") {
        throw problem("SIGN_IN_REQUIRED", "only a person who is signed in may do this, no token");
      }
      return;
    case Access.DEVELOPER:
      authorizeDeveloper(known, situation);
      return;
    case Access.ADMIN:
      authorizeDeveloper(known, situation);
      authorizeAdmin(known, situation);
      return;
    case Access.MONITORING:
      if (known.kind !== "token" || !known.access.monitoring) {
        throw problem("ACCESS_DENIED", "this asks for a token with monitoring access");
      }
      return;
    case Access.WORKER:
      if (known.kind !== "token" || !known.access.worker) {
        throw problem(
          "ACCESS_DENIED",
          "this asks for a token with worker access (tessera token create <name> --worker --deployment <name>)",
        );
      }
      return;
    case Access.LAUNCH:
      if (known.kind !== "token" || !known.access.launch) {
        throw problem(
          "ACCESS_DENIED",
          "this asks for a token with launch access (tessera token create <name> --access launch --deployment <name>)",
        );
      }
      return;
    case Access.OPERATOR:
      if (known.kind !== "session" || !known.operator) {
        throw operatorRequired();
      }
      return;
    default:
      throw problem("INTERNAL", "internal error; the server's log has the details", {
        cause: new Error(`no rule for access ${access}`),
      });
  }
}

/**
 * The role in an organization of a session's person or a personal token's
 * owner; undefined for any other principal.
 */
export function roleIn(principal: Principal, organizationId: string): Role | undefined {
  switch (principal.kind) {
    case "session":
      return principal.memberships.find((each) => each.organizationId === organizationId)?.role;
    case "token":
      return principal.organizationId === organizationId ? principal.user?.role : undefined;
    default:
      return undefined;
  }
}

/** Whether a principal belongs to an organization, and so may know about it. */
export function belongsTo(principal: Principal, organizationId: string): boolean {
  return principal.kind === "token"
    ? principal.organizationId === organizationId
    : roleIn(principal, organizationId) !== undefined;
}

/**
 * Whether a principal may see which deployments an organization has: its members, and its
 * tokens with developer operations.
 */
export function seesDeployments(principal: Principal, organizationId: string): boolean {
  return (
    belongsTo(principal, organizationId) &&
    (principal.kind !== "token" || principal.access.developerOperations)
  );
}

/**
 * Whether a member or a token of an organization may read the tasks of one of its deployments:
 * a token only of those that it may call.
 */
export function readsTasks(
  principal: SessionPrincipal | TokenPrincipal,
  deploymentId: string,
): boolean {
  return principal.kind === "session" || opens(principal, deploymentId);
}

/**
 * The problem of a call for a deployment that does not exist, or that the caller may not see:
 * nobody can tell which. Without a credential it is TOKEN_MISSING, else DEPLOYMENT_NOT_FOUND.
 *
 * @param name `organization/name`, as the caller gave it.
 */
export function deploymentUnknown(principal: Principal, name?: string): Problem {
  if (principal.kind !== "session" && principal.kind !== "token") {
    return unauthenticated(principal);
  }
  const which = name === undefined ? "this deployment" : `deployment ${JSON.stringify(name)}`;
  return problem(
    "DEPLOYMENT_NOT_FOUND",
    `${which} does not exist, or this credential may not call it`,
  );
}

/** How recent a sign-in has to be for deeds that ask for one. */
const RECENT_SIGN_IN_MS = 10 * 60_000;

/**
 * Throws SIGN_IN_REQUIRED unless the person of the session authenticated within
 * the last `withinMs`.
 */
export function requireRecentSignIn(
  { authenticatedAtMs }: SessionPrincipal,
  nowMs: number,
  withinMs = RECENT_SIGN_IN_MS,
): void {
  if (nowMs - authenticatedAtMs > withinMs) {
    throw problem(
      "SIGN_IN_REQUIRED",
      `this asks for a sign-in within the last ${withinMs / 60_000} minutes: confirm your password, or, where you sign in by a provider, open /auth/oidc/start?confirm=true in the browser`,
    );
  }
}

/** The problem of a caller without a valid credential. */
function unauthenticated(principal: Principal): Problem {
  return principal.kind === "anonymous" && principal.signedOut === true
    ? problem("TOKEN_INVALID", "your session has ended: sign in again")
    : problem(
        "TOKEN_MISSING",
        "this needs a credential: send the header Authorization: Bearer <token>, or sign in",
      );
}

function signedIn(principal: Principal): SessionPrincipal | TokenPrincipal {
  if (principal.kind === "session" || principal.kind === "token") {
    return principal;
  }
  throw unauthenticated(principal);
}

function authorizeDeveloper(
  principal: SessionPrincipal | TokenPrincipal,
  { organizationId }: Situation,
): void {
  if (organizationId !== undefined && !belongsTo(principal, organizationId)) {
    throw problem(
      "ORGANIZATION_NOT_FOUND",
      "this organization does not exist, or you do not belong to it",
    );
  }
  if (principal.kind === "token" && !principal.access.developerOperations) {
    throw problem("ACCESS_DENIED", "this asks for a token with developer operations access");
  }
}

function authorizeAdmin(
  principal: SessionPrincipal | TokenPrincipal,
  { organizationId }: Situation,
): void {
  const organization = principal.kind === "token" ? principal.organizationId : organizationId;
  // While the organization is not known, a session's role cannot be checked.
  if (organization !== undefined && roleIn(principal, organization) !== "admin") {
    throw adminRequired();
  }
}

/** The problem for callers that are not operators. */
export function operatorRequired(): Problem {
  return problem(
    "OPERATOR_REQUIRED",
    "this asks for an operator of the platform who is signed in; make one on its machine with tessera admin operators add",
  );
}

/** The problem for callers that are not admins. */
export function adminRequired(): Problem {
  return problem("ADMIN_REQUIRED", "an admin of the organization has to do this");
}

function authorizeEndpoint(principal: Principal, { deployment, standalone }: Situation): void {
  if (standalone === true || deployment?.authorization === false) {
    return;
  }
  if (deployment === undefined) {
    throw deploymentUnknown(principal);
  }
  const { deploymentId, organizationId, organization, name } = deployment;
  const isToken = principal.kind === "token";
  if (belongsTo(principal, organizationId) && (!isToken || opens(principal, deploymentId))) {
    return;
  }
  throw seesDeployments(principal, organizationId)
    ? problem(
        "ACCESS_DENIED",
        "this deployment asks for a token with protected endpoint access for it",
      )
    : deploymentUnknown(principal, `${organization}/${name}`);
}

/**
 * Whether a caller may still do all that they might before, in one organization where it is known:
 * their role is no lower, and their token has the access, and the deployments, that it had.
 */
export function keepsRights(before: Principal, now: Principal, organizationId?: string): boolean {
  switch (before.kind) {
    case "session":
      return (
        now.kind === "session" &&
        (now.operator || !before.operator) &&
        before.memberships
          .filter((each) => (organizationId ?? each.organizationId) === each.organizationId)
          .every((each) => isNoLower(roleIn(now, each.organizationId), each.role))
      );
    case "token":
      return (
        now.kind === "token" &&
        ACCESSES.every((each) => now.access[each] || !before.access[each]) &&
        isNoLower(now.user?.role, before.user?.role) &&
        (now.allDeployments ||
          (!before.allDeployments &&
            before.deployments.every(({ deploymentId }) =>
              now.deployments.some((each) => each.deploymentId === deploymentId),
            )))
      );
    default:
      return now.kind === before.kind;
  }
}

const ACCESSES = Object.keys(NO_ACCESS) as (keyof typeof NO_ACCESS)[];

function isNoLower(role: Role | undefined, than: Role | undefined): boolean {
  return role === than || role === "admin" || than === undefined;
}

/** Whether a token may join workers to a deployment. */
export function joins(token: TokenPrincipal, deploymentId: string): boolean {
  return token.access.worker && isFor(token, deploymentId);
}

/** Whether a token may start machines for a deployment. */
export function launches(token: TokenPrincipal, deploymentId: string): boolean {
  return token.access.launch && isFor(token, deploymentId);
}

function opens(token: TokenPrincipal, deploymentId: string): boolean {
  return token.access.protectedEndpoint && isFor(token, deploymentId);
}

function isFor({ allDeployments, deployments }: TokenPrincipal, deploymentId: string): boolean {
  return allDeployments || deployments.some((each) => each.deploymentId === deploymentId);
}
