/**
 * Access control of calls: authenticates the caller, and decides whether they
 * may call the method, by the method's access, the kind of credential, the
 * caller's role in the request's organization, and the deployment that is
 * called, which is found here. The method itself decides what depends on
 * another resource, such as the owner of a token.
 */
import { type DescMethod, getOption, type Message } from "@bufbuild/protobuf";
import {
  type ContextValues,
  createContextKey,
  type HandlerContext,
  type Interceptor,
  type StreamRequest,
  type StreamResponse,
  type UnaryRequest,
} from "@connectrpc/connect";
import { Access, access } from "../../../../gen/tessera/v1/access_pb.js";
import { AuthService } from "../../../../gen/tessera/v1/auth_pb.js";
import { authorize, keepsRights } from "../../../auth/permissions.ts";
import {
  type Authenticate,
  addressOf,
  type Credentials,
  isSecure,
  type Principal,
  principalOf,
  setPrincipal,
} from "../../../auth/principal.ts";
import type { Deployment } from "../../../deployments/deployment.ts";
import type { CallTarget, Directory, Located } from "../../../deployments/directory.ts";
import { problem } from "../../../errors.ts";
import { raceAbort } from "../../../time/race.ts";
import { isCrossSite, isSafe } from "../../origins.ts";
import {
  type Caller,
  callerOf,
  hostOf,
  memberIn,
  organizationIdOf,
  organizationNotFound,
  setMember,
} from "../engine/caller.ts";
import { failureOf, untilAborted } from "../engine/deadline.ts";
import type { ServiceRegistration } from "../engine/invoker.ts";
import { type LastingStream, type Standings, standingOf } from "../engine/standing.ts";

// The target of a call: finds its deployment and checks that the caller may
// call it. An interceptor does so, or a plugin that has to know before it
// reads the body; methods take the deployment from the context of the call.

/** Names the deployment as `organization/name` on hosts that do not. */
export const DEPLOYMENT_HEADER = "tessera-deployment";

const locatedKey = createContextKey<Located | undefined>(undefined, {
  description: "the deployment that the call is for",
});

/**
 * Finds the deployment of a call and puts it into the call's context values,
 * which hold its caller already. One at rest is opened for a caller who may call it. Returns a
 * promise only if the deployment is not known, or not open. Errors: those of `Directory.find` and
 * `authorize`.
 */
type Locate = (
  values: ContextValues,
  target: Pick<CallTarget, "named" | "header">,
) => Promise<void> | undefined;

/** Creates the function that finds deployments; `standalone` as in `Situation`. */
export function createLocate(
  directory: Directory,
  { standalone }: { readonly standalone: boolean },
): Locate {
  return (values, { named, header }) => {
    const { principal } = callerOf({ values });
    const admit = (located: Located): Promise<void> | undefined => {
      authorize(principal, Access.ENDPOINT, { standalone, deployment: located.facts });
      values.set(locatedKey, located);
      return located.wake?.();
    };
    const found = directory.find({ named, header, host: hostOf(values) }, principal);
    return found instanceof Promise ? found.then(admit) : admit(found);
  };
}

/** True if the deployment of a call has been found already. */
export function isLocated(values: ContextValues): boolean {
  return values.get(locatedKey) !== undefined;
}

/** The running deployment that a call is for. Throws the errors of `Located.deployment`. */
export function deploymentOf(ctx: Pick<HandlerContext, "values">): Deployment {
  return locatedOf(ctx).deployment();
}

/** The deployment that a call is for, whether it runs or not. */
export function locatedOf({ values }: Pick<HandlerContext, "values">): Located {
  const located = values.get(locatedKey);
  if (located === undefined) {
    throw new Error("the method's access does not ask for a deployment");
  }
  return located;
}

interface AuthorizeOptions {
  /** See `Situation`. */
  readonly standalone: boolean;
  /** Finds the deployment that is called; undefined on a server without deployments. */
  readonly locate: Locate | undefined;
}

/**
 * Creates the interceptor. Errors: those of `authorize`, `memberIn` and
 * `Locate`; ACCESS_DENIED for pages of other sites.
 */
export function createAuthorizeInterceptor(
  accessOf: AccessOf,
  { standalone, locate }: AuthorizeOptions,
): Interceptor {
  return (next) => (req) => {
    const { method, contextValues } = req;
    const caller = callerOf({ values: contextValues });
    if (usesCookie(caller, method) && !isSafe(req.requestMethod)) {
      refuseOtherSites(req.header, hostOf(contextValues));
    }
    const access = accessOf(method);
    const locateCalled = access === Access.ENDPOINT ? locate : undefined;
    if (locateCalled === undefined) {
      authorize(caller.principal, access, { standalone });
    }
    refuseForeignHost(caller);
    if (locateCalled === undefined && !isInOrganization(access)) {
      return next(req);
    }
    const entry = { req, caller, access, locate: locateCalled };
    if (req.stream) {
      return admitted(req.message, entry).then((message) => next({ ...req, message }));
    }
    const pending = admit(req.message, entry);
    return pending === undefined ? next(req) : pending.then(() => next(req));
  };
}

/** A call for a deployment or for an organization. */
interface Entry {
  readonly req: UnaryRequest | StreamRequest;
  readonly caller: Caller;
  readonly access: Access;
  /** Undefined for a call that is not for a deployment. */
  readonly locate: Locate | undefined;
}

/** Throws if the caller may not send this message; rejects if that has to be looked up. */
function admit(
  message: Message,
  { req, caller, access, locate }: Entry,
): Promise<void> | undefined {
  const { contextValues } = req;
  if (locate === undefined) {
    const member = memberIn(caller, namedOrganization(message));
    authorize(caller.principal, access, member);
    setMember(contextValues, member);
    return undefined;
  }
  const { deployment } = message as { readonly deployment?: unknown };
  const named = typeof deployment === "string" ? deployment : "";
  // A plugin that had to know the deployment before it read the body has found it already.
  return named === "" && isLocated(contextValues)
    ? undefined
    : locate(contextValues, { named, header: req.header.get(DEPLOYMENT_HEADER) ?? "" });
}

/** Admits a stream by its first message, which names its organization or deployment. */
async function admitted(
  messages: AsyncIterable<Message>,
  entry: Entry,
): Promise<AsyncIterable<Message>> {
  const iterator = messages[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done) {
    throw problem("REQUEST_INVALID", "the call carries no message");
  }
  await admit(first.value, entry);
  return (async function* () {
    yield first.value;
    yield* { [Symbol.asyncIterator]: () => iterator };
  })();
}

/** True if a browser may send the session by itself, or if an anonymous caller may get one from AuthService. */
function usesCookie({ principal: { kind } }: Caller, { parent }: DescMethod): boolean {
  return kind === "session" || (kind === "anonymous" && parent === AuthService);
}

function refuseOtherSites(header: Headers, host: string): void {
  const site = header.get("sec-fetch-site");
  if (isCrossSite({ site, origin: header.get("origin"), host })) {
    throw problem(
      "ACCESS_DENIED",
      "this request comes from a page of another site, which may not act for the person who is signed in",
    );
  }
}

/** On the host of an organization, refuses the tokens of all others. */
function refuseForeignHost({ principal, hostOrganization }: Caller): void {
  if (
    principal.kind === "token" &&
    hostOrganization !== undefined &&
    principal.organization !== hostOrganization
  ) {
    throw organizationNotFound(hostOrganization);
  }
}

/** The organization that a request names, either in `organization` or as the resource to change. */
function namedOrganization(message: Message): string {
  const { organization } = message as { readonly organization?: unknown };
  if (typeof organization === "object" && organization !== null && "name" in organization) {
    return String(organization.name);
  }
  return typeof organization === "string" ? organization : "";
}

// The access table: the option `access` of every method, read once at start.

/** Looks up the access of a method. */
type AccessOf = (method: DescMethod) => Access;

/** Access of services from other projects, whose proto files lack the option, by full name. */
interface ForeignAccess {
  readonly [service: string]: Access;
}

/** Reads the access of all served methods; a method that is not served has none. Throws if a served one has none. */
export function accessTable(
  services: readonly ServiceRegistration[],
  foreign: ForeignAccess = {},
): AccessOf {
  const table = new Map<DescMethod, Access>();
  for (const method of services.flatMap(({ service }) => service.methods)) {
    const name = `${method.parent.typeName}.${method.name}`;
    const found = foreign[method.parent.typeName] ?? getOption(method, access);
    if (found === Access.UNSPECIFIED) {
      throw new Error(`${name} cannot be served: its proto file must give it the option access`);
    }
    table.set(method, found);
  }
  return (method) => table.get(method) ?? Access.UNSPECIFIED;
}

/** True for an access that depends on the caller's role in an organization. */
function isInOrganization(found: Access): boolean {
  return found === Access.DEVELOPER || found === Access.ADMIN;
}

// Authentication.

/** The headers that carry credentials. */
interface CredentialHeaders {
  readonly authorization: string | undefined;
  readonly cookie: string | undefined;
  /** See `Credentials`. */
  readonly again?: boolean;
}

/**
 * Puts the principal of a call into its context values. Returns a promise only
 * if the principal is not known at once. Errors: TOKEN_MISSING, TOKEN_INVALID.
 */
export type Identify = (
  method: DescMethod,
  headers: CredentialHeaders,
  values: ContextValues,
) => Promise<void> | undefined;

/**
 * Creates the function that authenticates calls. A public method accepts every
 * credential: it sees a valid session and ignores an old cookie, which must
 * not prevent another sign-in.
 */
export function createIdentify(authenticate: Authenticate, accessOf: AccessOf): Identify {
  const publicly = async (credentials: Credentials): Promise<Principal> => {
    try {
      return await authenticate({ ...credentials, authorization: undefined });
    } catch {
      return ANONYMOUS;
    }
  };
  return (method, { authorization, cookie, again = false }, values) => {
    const credentials = {
      authorization,
      cookie,
      address: addressOf(values),
      secure: isSecure(values),
      again,
    };
    let found: Principal | Promise<Principal>;
    if (accessOf(method) !== Access.PUBLIC) {
      found = authenticate(credentials);
    } else {
      found = cookie === undefined ? ANONYMOUS : publicly(credentials);
    }
    if (found instanceof Promise) {
      return found.then((principal) => void setPrincipal(values, principal));
    }
    setPrincipal(values, found);
    return undefined;
  };
}

const ANONYMOUS: Principal = { kind: "anonymous" };

/**
 * Authenticates calls whose context has no principal yet. A plugin that had to
 * know the caller before it read the body has put it there.
 */
export function createAuthenticateInterceptor(identify: Identify): Interceptor {
  return (next) => (req) => {
    const { contextValues, header, method } = req;
    if (principalOf(contextValues) !== undefined) {
      return next(req);
    }
    const pending = identify(method, credentialsIn(header), contextValues);
    return pending === undefined ? next(req) : pending.then(() => next(req));
  };
}

/** The credentials among the headers of a call. */
function credentialsIn(header: Headers): CredentialHeaders {
  return {
    authorization: header.get("authorization") ?? undefined,
    cookie: header.get("cookie") ?? undefined,
  };
}

/**
 * Ends every stream with its credential and with the server, whatever its method does (see
 * `engine/standing.ts`): the method's signal aborts, and the caller gets the error. Calls without a
 * stream pass as they are.
 */
interface StandingOptions {
  readonly standings: Standings;
  readonly identify: Identify;
  readonly accessOf: AccessOf;
  /** See `Situation`. There nobody's rights change while the server runs. */
  readonly standalone: boolean;
  readonly directory: Directory | undefined;
}

type Next = ReturnType<Interceptor>;

/** Creates the interceptor. It comes after those that find the caller and the deployment. */
export function createStandingInterceptor(options: StandingOptions): Interceptor {
  return (next) => (req) => (req.stream ? keep(next, req, options) : next(req));
}

async function keep(
  next: Next,
  req: StreamRequest,
  options: StandingOptions,
): Promise<StreamResponse> {
  const { contextValues: values } = req;
  const controller = new AbortController();
  const { signal } = controller;
  let stop = (): void => {};
  // Not `AbortSignal.any`: with a listener it would live as long as the caller's connection.
  const follow = (): void => {
    release();
    controller.abort(req.signal.reason);
  };
  const release = (): void => {
    stop();
    req.signal.removeEventListener("abort", follow);
  };
  req.signal.addEventListener("abort", follow);
  if (req.signal.aborted) {
    follow();
  } else {
    stop = options.standings.add({
      values,
      ask: questionOf(req, options),
      end(found) {
        release();
        controller.abort(found);
      },
    });
  }
  try {
    const res = (await raceAbort(next({ ...req, signal }), signal)) as StreamResponse;
    return { ...res, message: released(untilAborted(res.message, signal), release) };
  } catch (thrown) {
    release();
    throw failureOf(thrown, signal);
  }
}

async function* released(
  messages: StreamResponse["message"],
  release: () => void,
): StreamResponse["message"] {
  try {
    yield* messages;
  } finally {
    release();
  }
}

/** What is asked again and again: who is calling, and whether they may do what they do. */
export function questionOf(
  req: Pick<StreamRequest, "contextValues" | "header"> & { readonly method: DescMethod },
  options: StandingOptions,
): LastingStream["ask"] {
  const { contextValues: values, method } = req;
  if (options.standalone || options.accessOf(method) === Access.PUBLIC) {
    return undefined;
  }
  const before = principalOf(values);
  const given = { ...credentialsIn(req.header), again: true };
  const access = options.accessOf(method);
  const identify = standingOf(values)?.identify ?? (() => options.identify(method, given, values));
  return async () => {
    await identify();
    const now = principalOf(values);
    if (before === undefined || now === undefined) {
      return;
    }
    if (access === Access.ENDPOINT && isLocated(values)) {
      authorize(now, access, { deployment: await factsNow(values, now, options.directory) });
    } else if (now !== before) {
      const organizationId = organizationIdOf(values);
      authorize(now, access, organizationId === undefined ? {} : { organizationId });
      if (!keepsRights(before, now, organizationId)) {
        throw problem(
          "ACCESS_DENIED",
          `the ${now.kind} of this stream may do less than when it began: open it again`,
        );
      }
    }
  };
}

/** The facts of the deployment as they are now; as they were where it is gone, or cannot be asked for. */
async function factsNow(
  values: ContextValues,
  principal: Principal,
  directory: Directory | undefined,
): Promise<Located["facts"]> {
  const { facts } = locatedOf({ values });
  const named = `${facts.organization}/${facts.name}`;
  try {
    const found = await directory?.find({ named, header: "", host: hostOf(values) }, principal);
    return found?.facts.deploymentId === facts.deploymentId ? found.facts : facts;
  } catch {
    // That a deployment ends is no end of the credential: its calls are ended with it.
    return facts;
  }
}
