/**
 * Who may do what: for each kind of access that a method of the API names
 * (access.proto), which principals have it. Everything that is not allowed
 * here is refused.
 *
 *     access         session           token                              nobody
 *     public         yes               yes                                yes
 *     authenticated  yes               yes                                no
 *     session        yes               no                                 no
 *     developer      of a member       with developer operations          no
 *     admin          of an admin       an admin's, with developer ops     no
 *     endpoint       of a member       with protected endpoint, for it    while it is open
 *     monitoring     no                with monitoring                    no
 *
 * A personal token acts as its person, with the role that the person has now.
 * An organization token stands for nobody: it is no admin, whoever made it.
 * An organization that a caller does not belong to is not found, and neither
 * is what belongs to it; forbidden is only what the caller may know of.
 */
import { Access } from "../../gen/tessera/v1/access_pb.js";
import { type Problem, problem } from "../errors.ts";
import type { Role } from "../storage/accounts/people.ts";
import type { Principal, SessionPrincipal, TokenPrincipal } from "./principal.ts";

/** The facts a decision rests on, besides the principal. */
export interface Situation {
  /**
   * The organization that the request is about. Without it, only what follows
   * from the credential itself is decided.
   */
  readonly organizationId?: string;
  /** The deployment that is called, for endpoint access; without it there is none to be found. */
  readonly deployment?: {
    readonly deploymentId: string;
    readonly organizationId: string;
    readonly name: string;
    readonly authorization: boolean;
  };
  /**
   * Default false. True for `tessera serve`, which has no people and no
   * organizations: there everyone (or everyone with the shared token) may call
   * whatever asks for no more than a valid credential or a deployment.
   */
  readonly standalone?: boolean;
}

/**
 * Returns when the principal has this access, and throws otherwise:
 * TOKEN_INVALID where a credential is missing, SIGN_IN_REQUIRED where only a
 * person will do, ADMIN_REQUIRED where an admin has to do it, ACCESS_DENIED
 * where the credential lacks the access, ORGANIZATION_NOT_FOUND and
 * DEPLOYMENT_NOT_FOUND for what the principal must not know of.
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
    default:
      throw problem("INTERNAL", "internal error; the server's log has the details", {
        cause: new Error(`no rule for access ${access}`),
      });
  }
}

/** The role of a person, or of a personal token's person, in an organization. */
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

/** Whether a principal belongs to an organization, and so may know of it. */
export function belongsTo(principal: Principal, organizationId: string): boolean {
  return principal.kind === "token"
    ? principal.organizationId === organizationId
    : roleIn(principal, organizationId) !== undefined;
}

/**
 * Throws SIGN_IN_REQUIRED unless the person of a session has proved to be
 * there within `withinMs`.
 */
export function requireRecentSignIn(
  { authenticatedAtMs }: SessionPrincipal,
  nowMs: number,
  withinMs = 10 * 60_000,
): void {
  if (nowMs - authenticatedAtMs > withinMs) {
    throw problem(
      "SIGN_IN_REQUIRED",
      `this asks for a sign-in within the last ${withinMs / 60_000} minutes: confirm your password, or, where you sign in by a provider, open /auth/oidc/start?confirm=true in the browser`,
    );
  }
}

/** What is said where a credential is missing. */
export function credentialMissing(): Problem {
  return problem(
    "TOKEN_INVALID",
    "this needs a credential: send the header Authorization: Bearer <token>, or sign in",
  );
}

function signedIn(principal: Principal): SessionPrincipal | TokenPrincipal {
  if (principal.kind === "session" || principal.kind === "token") {
    return principal;
  }
  throw credentialMissing();
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
  // A session says nothing of admins as long as the organization is open.
  if (organization !== undefined && roleIn(principal, organization) !== "admin") {
    throw adminRequired();
  }
}

/** What is said to who is no admin. */
export function adminRequired(): Problem {
  return problem("ADMIN_REQUIRED", "an admin of the organization has to do this");
}

function authorizeEndpoint(principal: Principal, { deployment, standalone }: Situation): void {
  if (standalone === true || deployment?.authorization === false) {
    return;
  }
  const known = signedIn(principal);
  if (deployment === undefined || !belongsTo(known, deployment.organizationId)) {
    throw problem(
      "DEPLOYMENT_NOT_FOUND",
      "this deployment does not exist, or this credential may not know of it",
    );
  }
  if (known.kind === "token" && !opens(known, deployment.deploymentId)) {
    throw problem(
      "ACCESS_DENIED",
      "this deployment asks for a token with protected endpoint access for it",
    );
  }
}

function opens(
  { access, allDeployments, deployments }: TokenPrincipal,
  deploymentId: string,
): boolean {
  return (
    access.protectedEndpoint &&
    (allDeployments || deployments.some((each) => each.deploymentId === deploymentId))
  );
}
