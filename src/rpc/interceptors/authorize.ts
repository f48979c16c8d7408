/**
 * Decides whether the caller may call the method at all: by the method's
 * access, the kind of credential, the caller's part in the organization of
 * the request, and the deployment that is called. What depends on another
 * thing that is asked for, such as whose a token is, is decided by the method
 * itself.
 */
import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { ContextValues, Interceptor, StreamRequest, UnaryRequest } from "@connectrpc/connect";
import { Access } from "../../../gen/tessera/v1/access_pb.js";
import { AuthService } from "../../../gen/tessera/v1/auth_pb.js";
import { authorize } from "../../auth/permissions.ts";
import { problem } from "../../errors.ts";
import { isCrossSite, isSafe } from "../../http/cross-site.ts";
import { type AccessOf, isInOrganization } from "../access.ts";
import {
  type Caller,
  callerOf,
  hostOf,
  memberIn,
  organizationNotFound,
  setMember,
} from "../caller.ts";
import { DEPLOYMENT_HEADER, isLocated, type Locate } from "../target.ts";

type AnyRequest = UnaryRequest | StreamRequest;

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
    const isOfDeployment = access === Access.ENDPOINT && locate !== undefined;
    if (!isOfDeployment) {
      authorize(caller.principal, access, { standalone });
    }
    refuseForeignHost(caller);
    if (isOfDeployment && !req.stream && isAdmitted(req.message, contextValues)) {
      return next(req);
    }
    const admit = isOfDeployment
      ? toDeployment(req, locate)
      : isInOrganization(access) && toOrganization(contextValues, caller, access);
    if (!admit) {
      return next(req);
    }
    if (req.stream) {
      return admitted(req.message, admit).then((message) => next({ ...req, message }));
    }
    const pending = admit(req.message);
    return pending === undefined ? next(req) : pending.then(() => next(req));
  };
}

/** Throws, or rejects where it has to ask, when the caller may not send this. */
type Admit = (message: Message) => Promise<void> | undefined;

function toDeployment({ header: headers, contextValues }: AnyRequest, locate: Locate): Admit {
  const header = headers.get(DEPLOYMENT_HEADER) ?? "";
  return (message) =>
    isAdmitted(message, contextValues)
      ? undefined
      : locate(contextValues, { named: namedDeployment(message), header });
}

function toOrganization(contextValues: ContextValues, caller: Caller, access: Access): Admit {
  return (message) => {
    const member = memberIn(caller, namedOrganization(message));
    authorize(caller.principal, access, member);
    setMember(contextValues, member);
    return undefined;
  };
}

/** A face that had to know the deployment before it read the body has found it already. */
function isAdmitted(message: Message, contextValues: ContextValues): boolean {
  return namedDeployment(message) === "" && isLocated(contextValues);
}

function namedDeployment(message: Message): string {
  const { deployment } = message as { readonly deployment?: unknown };
  return typeof deployment === "string" ? deployment : "";
}

/** A stream names its organization or deployment in its first message, which is waited for. */
async function admitted(
  messages: AsyncIterable<Message>,
  admit: Admit,
): Promise<AsyncIterable<Message>> {
  const iterator = messages[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done) {
    throw problem("REQUEST_INVALID", "the call carries no message");
  }
  await admit(first.value);
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
