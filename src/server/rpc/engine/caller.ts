/**
 * The caller of an RPC, their organization, and the key of their call.
 *
 * The request, its host or the credential names the organization; if several
 * do, they have to agree. An organization that the caller does not belong to
 * is not found, as if it did not exist. Nothing here queries the database: a
 * principal holds its memberships.
 */
import { type ContextValues, createContextKey, type HandlerContext } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import type { FastifyRequest } from "fastify";
import {
  addressOf,
  type Principal,
  principalOf,
  setAddress,
  setSecure,
} from "../../../auth/principal.ts";
import type { Deployment } from "../../../deployments/deployment.ts";
import { type Problem, problem, type Quota, tellQuota, toProblem } from "../../../errors.ts";
import { organizationOfHost } from "../../../hosting/hosts.ts";
import type { Protocol } from "../../../metrics/metrics.ts";
import type { EndpointManifest } from "../../../protocol/manifest.ts";
import type { Actor, Deed } from "../../../storage/accounts/deed.ts";
import type { Role } from "../../../storage/accounts/people.ts";
import { isTaskId } from "../../../tasks/id.ts";
import { loggedTrace, type Origin, readTrace } from "../../../tracing/context.ts";
import type { DeploymentTracing, OpenSpan, SpanEnd } from "../../../tracing/tracing.ts";
import type { CallNote } from "../../http/call-note.ts";
import { CallValues } from "./call-context.ts";

/** The sender of a request. */
export interface Caller {
  readonly principal: Principal;
  readonly address: string;
  /** The organization of the requested host. */
  readonly hostOrganization: string | undefined;
}

/** A caller in one organization. */
export interface Member {
  readonly principal: Exclude<Principal, { kind: "shared" | "anonymous" }>;
  readonly organizationId: string;
  readonly organization: string;
  /** The person's role; undefined for an organization's token. */
  readonly role: Role | undefined;
  /** The person; undefined for an organization's token. */
  readonly userId: string | undefined;
  readonly by: Actor;
}

/** The sources of time and ids. */
export interface Sources {
  readonly now: () => number;
  readonly newId: () => string;
}

/** The time of a request's arrival, its protocol and its target. */
interface Arrival {
  readonly protocol: Protocol;
  /** By `performance.now()`. */
  readonly atMs: number;
  readonly requestId: string;
  /** Facts for the access log; undefined if calls are not logged. */
  readonly note: CallNote | undefined;
  /** The requested host and port. */
  readonly host: string;
  /** The organization of the requested host. */
  readonly organization: string | undefined;
}

const arrivalKey = createContextKey<Arrival>(
  {
    protocol: "connect",
    atMs: 0,
    requestId: "",
    note: undefined,
    host: "",
    organization: undefined,
  },
  { description: "when the request came, and over which protocol" },
);

const memberKey = createContextKey<Member | undefined>(undefined, {
  description: "the caller in the organization of the request",
});

/** IPv4 over an IPv6 socket (RFC 4291, section 2.5.5.2). */
const MAPPED = /^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i;

function unmapped(address: string): string {
  return address.startsWith(":") ? address.replace(MAPPED, "") : address;
}

/** The context values of a request, for the interceptors. Errors: CALLER_GONE. */
export function requestValues(
  req: FastifyRequest,
  protocol: Protocol,
  platformDomain?: string,
): ContextValues {
  const address: string | undefined = req.ip;
  if (address === undefined) {
    // The connection broke after the request had arrived, so there is no caller to serve.
    throw problem("CALLER_GONE", "the caller has gone");
  }
  const values = setAddress(new CallValues(), unmapped(address));
  if (req.protocol === "https") {
    setSecure(values);
  }
  const { id: requestId, host, note } = req;
  const organization =
    platformDomain === undefined ? undefined : organizationOfHost(host, platformDomain);
  const atMs = performance.now();
  return values.set(arrivalKey, { protocol, atMs, requestId, note, host, organization });
}

/** The arrival of a call. */
export function arrivalOf(values: ContextValues): Arrival {
  return values.get(arrivalKey);
}

/** The host and port that a call requested. */
export function hostOf(values: ContextValues): string {
  return values.get(arrivalKey).host;
}

/** The caller; the interceptors have authenticated it before a handler runs. */
export function callerOf({ values }: Pick<HandlerContext, "values">): Caller {
  return {
    principal: principalOf(values) ?? { kind: "anonymous" },
    address: addressOf(values),
    hostOrganization: values.get(arrivalKey).organization,
  };
}

/** The caller in the organization of the request, as authorization determined it. */
export function memberOf({ values }: Pick<HandlerContext, "values">): Member {
  const member = values.get(memberKey);
  if (member === undefined) {
    throw new Error("the method's access does not ask for an organization");
  }
  return member;
}

/** The id of the organization of the request; undefined where the method's access asks for none. */
export function organizationIdOf(values: ContextValues): string | undefined {
  return values.get(memberKey)?.organizationId;
}

/** Stores the result of authorization for `memberOf`. */
export function setMember(values: ContextValues, member: Member): void {
  values.set(memberKey, member);
}

/**
 * The caller in an organization.
 *
 * Errors: ORGANIZATION_NOT_FOUND; REQUEST_INVALID for a contradiction, and if
 * a person in several organizations has to name one.
 *
 * @param named the organization that the request names; may be empty
 */
export function memberIn(caller: Caller, named: string): Member {
  const { principal, address, hostOrganization } = caller;
  if (named !== "" && hostOrganization !== undefined && named !== hostOrganization) {
    throw invalid("organization", `contradicts the host, which is that of ${hostOrganization}`);
  }
  const wanted = named || hostOrganization;
  if (principal.kind === "token") {
    const { organizationId, organization, user } = principal;
    if (wanted !== undefined && wanted !== organization) {
      throw organizationNotFound(wanted);
    }
    const { role, userId } = { role: user?.role, userId: user?.userId };
    return { principal, organizationId, organization, role, userId, by: actorOf(caller) };
  }
  if (principal.kind !== "session") {
    throw organizationNotFound(wanted ?? "");
  }
  const { memberships, userId } = principal;
  if (wanted === undefined && memberships.length > 1) {
    throw invalid("organization", "is missing, and you belong to several: name one");
  }
  const found = memberships.find((one) => wanted === undefined || one.organization === wanted);
  if (found === undefined) {
    throw wanted === undefined
      ? problem(
          "ORGANIZATION_NOT_FOUND",
          "you belong to no organization: create one, or be invited",
        )
      : organizationNotFound(wanted);
  }
  return { principal, ...found, userId, by: actorOf({ principal, address }) };
}

/** The actor for the audit log. A personal token acts for its person and is named with them. */
export function actorOf({ principal, address }: Pick<Caller, "principal" | "address">): Actor {
  switch (principal.kind) {
    case "session":
      return {
        name: principal.email,
        id: principal.userId,
        address,
        sessionId: principal.sessionId,
      };
    case "token": {
      const { user, tokenName, tokenId } = principal;
      return user === undefined
        ? { name: `token ${tokenName}`, id: tokenId, address }
        : {
            name: user.email,
            id: user.userId,
            address,
            token: { id: tokenId, name: tokenName },
          };
    }
    default:
      return { name: "", id: "", address };
  }
}

/** The actor, time and event id that every change is recorded with. */
export function deed(by: Actor, { now, newId }: Sources): Deed {
  return { by, nowMs: now(), eventId: newId() };
}

export function organizationNotFound(name: string): Problem {
  return problem(
    "ORGANIZATION_NOT_FOUND",
    `organization ${JSON.stringify(name)} does not exist, or you do not belong to it`,
  );
}

function invalid(field: "organization" | "key", description: string): Problem {
  return problem("REQUEST_INVALID", `${field} ${description}`, {
    violations: [{ field, description }],
  });
}

// The origin of a call: its request and its trace, and what the log says of them.

type Context = Pick<HandlerContext, "requestHeader" | "values">;

/** The trace and the request id that a call came with. */
export function originOf({ requestHeader, values }: Context): Origin {
  const { requestId, note } = arrivalOf(values);
  const trace = readTrace(requestHeader);
  if (note && trace !== undefined) {
    Object.assign(note, loggedTrace(trace));
  }
  return { trace, requestId, tokenId: tokenIdOf(values) };
}

/** The id of the token that a call came with; undefined: it came without one. */
export function tokenIdOf(values: ContextValues): string | undefined {
  const principal = principalOf(values);
  return principal?.kind === "token" ? principal.tokenId : undefined;
}

/** Adds a task to the call's line in the access log. */
export function noteTask(
  { values }: Pick<HandlerContext, "values">,
  { taskId, trace }: { readonly taskId: string; readonly trace?: string | undefined },
): void {
  const { note } = arrivalOf(values);
  if (note && isTaskId(taskId)) {
    Object.assign(note, { taskId, ...loggedTrace(trace) });
  }
}

/**
 * Runs a synchronous call in a span of its own. `run` gets the origin of what
 * happens within, below that span.
 */
export function tracedCall<Result>(
  ctx: HandlerContext,
  { tracing }: Pick<Deployment, "tracing">,
  call: TracedCall<Result>,
): Promise<Result> {
  const origin = originOf(ctx);
  return tracing === undefined ? call.run(origin) : inSpan(ctx, tracing, { ...call, origin });
}

interface TracedCall<Result> {
  readonly endpoint: string;
  run(origin: Origin): Promise<Result>;
}

async function inSpan<Result>(
  ctx: HandlerContext,
  tracing: DeploymentTracing,
  { endpoint, origin, run }: TracedCall<Result> & { readonly origin: Origin },
): Promise<Result> {
  const span = spanOf(ctx, tracing, { endpoint, origin });
  try {
    const result = await run({ ...origin, trace: span.trace });
    span.end({ outcome: "ok" });
    return result;
  } catch (thrown) {
    span.end(failureEnd(thrown));
    throw thrown;
  }
}

/** The same for a call whose result is streamed; a caller that leaves is no failure. */
export async function* tracedStream<Item>(
  ctx: HandlerContext,
  { tracing }: Pick<Deployment, "tracing">,
  { endpoint, run }: TracedStream<Item>,
): AsyncGenerator<Item, void, undefined> {
  const origin = originOf(ctx);
  const span = tracing && spanOf(ctx, tracing, { endpoint, origin });
  let end: SpanEnd = { outcome: "ok" };
  try {
    yield* run(span ? { ...origin, trace: span.trace } : origin);
  } catch (thrown) {
    end = failureEnd(thrown);
    throw thrown;
  } finally {
    span?.end(end);
  }
}

interface TracedStream<Item> {
  readonly endpoint: string;
  run(origin: Origin): AsyncIterable<Item>;
}

function spanOf(
  ctx: HandlerContext,
  tracing: DeploymentTracing,
  { endpoint, origin }: { readonly endpoint: string; readonly origin: Origin },
): OpenSpan {
  const { protocol, atMs, requestId, note } = arrivalOf(ctx.values);
  const span = tracing.callBegan({
    endpoint,
    protocol,
    requestId,
    parent: origin.trace,
    method: `${ctx.service.typeName}/${ctx.method.name}`,
    atMs: Date.now() - (performance.now() - atMs),
  });
  if (note) {
    Object.assign(note, loggedTrace(span.trace));
  }
  return span;
}

function failureEnd(thrown: unknown): SpanEnd {
  return { outcome: "failure", error: codeToString(toProblem(thrown).code) };
}

// The key of a call: whose it is among the callers that share its endpoint, or its server.

/** The header that names it, over every protocol. */
const KEY_HEADER = "tessera-key";
/** Characters of a key, which stands in the row of its task and in indexes. */
const MAX_KEY_CHARACTERS = 128;

/** A call, as far as its key needs it. */
interface Called extends Pick<HandlerContext, "values"> {
  readonly requestHeader: Pick<Headers, "get">;
}

/**
 * The key of a call. Throws REQUEST_INVALID for one that cannot be one, and where the header
 * `Tessera-Key` is another.
 *
 * Where neither is given, an endpoint that goes by keys has the caller's token, or the person.
 *
 * @param given in the request; empty: not there
 */
export function keyOf(
  ctx: Called,
  given: string,
  { byKey }: Pick<EndpointManifest, "byKey">,
): string | undefined {
  const { requestHeader } = ctx;
  const header = requestHeader.get(KEY_HEADER) ?? "";
  if (given !== "" && header !== "" && given !== header) {
    throw invalid("key", "contradicts the header Tessera-Key: give it in one of the two places");
  }
  const key = given || header;
  if (key === "") {
    return byKey && callerKey(ctx);
  }
  const fault = faultOfKey(key);
  if (fault !== undefined) {
    throw invalid("key", fault);
  }
  return key;
}

/** The key of a call of an api, or of a request to a server; undefined where it has no limits by key. */
export function keyOfCall(
  ctx: Called,
  endpoint: Pick<EndpointManifest, "byKey">,
): string | undefined {
  return endpoint.byKey && keyOf(ctx, "", endpoint);
}

/** Tells in the answer to a call of an api what its key has left, where the endpoint has a rate by key. */
export function tellsQuota({ responseHeader }: HandlerContext, { byKey }: EndpointManifest) {
  return byKey?.rate && { onQuota: (left: Quota): void => tellQuota(responseHeader, left) };
}

function callerKey(ctx: Pick<HandlerContext, "values">): string | undefined {
  const { principal } = callerOf(ctx);
  switch (principal.kind) {
    case "token":
      return principal.tokenId;
    case "session":
      return principal.userId;
    default:
      return undefined;
  }
}

function faultOfKey(key: string): string | undefined {
  if ([...key.slice(0, 2 * MAX_KEY_CHARACTERS + 1)].length > MAX_KEY_CHARACTERS) {
    return `must have at most ${MAX_KEY_CHARACTERS} characters: send an id, or a digest of what is longer`;
  }
  return /[\p{Cc}\p{Cs}]/u.test(key) ? "must be text without control characters" : undefined;
}
