/**
 * Decides whether the caller may call the method at all: by the method's
 * access, the kind of credential, the caller's part in the organization of
 * the request, and the deployment that is called. What depends on another
 * thing that is asked for, such as whose a token is, is decided by the method
 * itself.
 */
import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { Interceptor, StreamRequest, UnaryRequest } from "@connectrpc/connect";
import { Access } from "../../../../gen/tessera/v1/access_pb.js";
import { AuthService } from "../../../../gen/tessera/v1/auth_pb.js";
import { authorize } from "../../../auth/permissions.ts";
import { problem } from "../../../errors.ts";
import { isCrossSite, isSafe } from "../../http/cross-site.ts";
import { type AccessOf, isInOrganization } from "../engine/access.ts";
import {
  type Caller,
  callerOf,
  hostOf,
  memberIn,
  organizationNotFound,
  setMember,
} from "../engine/caller.ts";
import { DEPLOYMENT_HEADER, isLocated, type Locate } from "../target.ts";

export interface AuthorizeOptions {
  /** See `Situation`. */
  readonly standalone: boolean;
  /** Finds the deployment that is called; undefined on a server that has none. */
  readonly locate: Locate | undefined;
}

/**
 * Errors: those of `authorize`, `memberIn` and `Locate`; ACCESS_DENIED for
 * pages of other sites.
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

/** A call of a deployment, or of an organization's own method. */
interface Entry {
  readonly req: UnaryRequest | StreamRequest;
  readonly caller: Caller;
  readonly access: Access;
  /** Undefined for what is no deployment's. */
  readonly locate: Locate | undefined;
}

/** Throws, or rejects where it has to ask, when the caller may not send this. */
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
  // A face that had to know the deployment before it read the body has found it already.
  return named === "" && isLocated(contextValues)
    ? undefined
    : locate(contextValues, { named, header: req.header.get(DEPLOYMENT_HEADER) ?? "" });
}

/** A stream names its organization or deployment in its first message, which is waited for. */
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

/** A browser sends a session by itself; and for who has none, the methods of AuthService leave one behind. */
function usesCookie({ principal: { kind } }: Caller, { parent }: DescMethod): boolean {
  return kind === "session" || (kind === "anonymous" && parent === AuthService);
}

function refuseOtherSites(header: Headers, host: string): void {
  const site = header.get("sec-fetch-site");
  if (isCrossSite({ site, origin: header.get("origin"), host })) {
    throw problem(
      "ACCESS_DENIED",
      "this request comes from a page of another site, which may not act for whoever is signed in",
    );
  }
}

/** On the host of an organization, the tokens of others are worth nothing, whatever they ask for. */
function refuseForeignHost({ principal, hostOrganization }: Caller): void {
  if (
    principal.kind === "token" &&
    hostOrganization !== undefined &&
    principal.organization !== hostOrganization
  ) {
    throw organizationNotFound(hostOrganization);
  }
}

/** A request names its organization in `organization`, or as the thing to change. */
function namedOrganization(message: Message): string {
  const { organization } = message as { readonly organization?: unknown };
  if (typeof organization === "object" && organization !== null && "name" in organization) {
    return String(organization.name);
  }
  return typeof organization === "string" ? organization : "";
}
