/**
 * The browser's side of OpenID Connect: `/auth/oidc/start` redirects to the
 * provider, `/auth/oidc/callback` receives its answer and signs the person in.
 * With `?confirm=true`, a signed-in person confirms their presence, for actions
 * that need a recent sign-in. The sign-in page reports failures; it gets one
 * word for the reason and no detail.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { AuthService } from "../../../gen/tessera/v1/auth_pb.js";
import { cookieValues } from "../../auth/cookies.ts";
import type { KeyRing } from "../../auth/keys.ts";
import { principalOf, type SessionPrincipal } from "../../auth/principal.ts";
import { newSession, writeSessionCookie } from "../../auth/session-cookie.ts";
import type { Accounts } from "../../storage/accounts/accounts.ts";
import type { EndedCredentials } from "../../storage/accounts/people.ts";
import { requestLog } from "../http/request-log.ts";
import type { PluginContext } from "../protocols.ts";
import { type Flow, type Identity, type OidcProvider, SignInDenied } from "./provider.ts";
import { confirmBy, type Refusal, type SignInOptions, signInAs } from "./sign-in.ts";

const NAME = "tessera_oidc";
const CONTEXT = "oidc sign-in";
/** How long a sign-in by a provider may take, from its begin to the return. */
const OIDC_SIGN_IN_LIFETIME_MS = 10 * 60_000;

export interface OidcOptions extends SignInOptions {
  readonly provider: OidcProvider;
  /** The provider's name, as people see it. */
  readonly name: string;
  readonly keys: KeyRing;
  /** True if browsers always reach the platform over TLS, whatever protocol a request has. */
  readonly secure: boolean;
  readonly sessionLifetimeMs: number;
}

/** The reason for which the sign-in page is shown again. */
type Word = Refusal | "denied" | "expired" | "failed";

export interface SignInPageOptions {
  readonly accounts: Pick<Accounts, "needsSetup">;
  /** Undefined: sign-in by password only. */
  readonly oidc: OidcOptions | undefined;
  /** Finds the session of a browser. */
  readonly contextValues: PluginContext["contextValues"];
}

/** What both routes need: the options, and the session of a browser. */
interface Way extends OidcOptions {
  readonly sessionOf: (req: FastifyRequest) => Promise<SessionPrincipal | undefined>;
}

/** The routes of the sign-in page: the available methods, whether the platform is set up, and OpenID Connect. */
export async function signInMethods(
  app: FastifyInstance,
  { accounts, oidc, contextValues }: SignInPageOptions,
): Promise<void> {
  // Once it is set up, it stays so.
  let isSetUp = false;
  app.get("/auth/methods", async (_req, reply) => {
    isSetUp ||= !(await accounts.needsSetup());
    return reply
      .header("cache-control", "no-cache")
      .send({ needs_setup: !isSetUp, password: true, ...(oidc && { oidc: { name: oidc.name } }) });
  });
  if (oidc !== undefined) {
    const sessionOf: Way["sessionOf"] = async (req) => {
      // A public method finds the session, but refuses nobody.
      const principal = principalOf(await contextValues(req, AuthService.method.signIn));
      return principal?.kind === "session" ? principal : undefined;
    };
    const wayOf = (req: FastifyRequest): Way => {
      return { ...oidc, secure: oidc.secure || req.protocol === "https", sessionOf };
    };
    app.get("/auth/oidc/start", (req, reply) => start(req, reply, wayOf(req)));
    app.get("/auth/oidc/callback", (req, reply) => callback(req, reply, wayOf(req)));
  }
}

async function start(
  req: FastifyRequest,
  reply: FastifyReply,
  { provider, keys, secure, now, sessionOf }: Way,
): Promise<FastifyReply> {
  const query = req.query as { readonly next?: unknown; readonly confirm?: unknown };
  const next = localPath(query.next);
  const session = query.confirm === "true" ? await sessionOf(req) : undefined;
  const afresh = query.confirm === "true";
  if (afresh && session === undefined) {
    return refuse(reply, "expired", next);
  }
  const nowMs = now();
  try {
    const { url, flow } = await provider.begin({ nowMs, afresh });
    const pending = { ...flow, next, ...(session && { confirms: session.sessionId }) };
    reply.header("set-cookie", writeFlowCookie(pending, { keys, secure, nowMs }));
    return go(reply, url);
  } catch (err) {
    requestLog(req).warn({ err }, "the OpenID Connect provider cannot be asked");
    return refuse(reply, "failed", next);
  }
}

async function callback(
  req: FastifyRequest,
  reply: FastifyReply,
  options: Way,
): Promise<FastifyReply> {
  const { provider, keys, secure, now, sessionLifetimeMs } = options;
  const pending = readFlowCookie(req.headers.cookie, { keys, secure, nowMs: now() });
  // The cookie is good for one answer, whether it succeeds or not.
  reply.header("set-cookie", clearFlowCookie(secure));
  if (pending === undefined) {
    return refuse(reply, "expired", "/");
  }
  const { next } = pending;
  try {
    const identity = await provider.finish(req.url.slice(req.url.indexOf("?")), pending);
    if (pending.confirms !== undefined) {
      const refusal = await confirm(req, { ...pending, identity }, options);
      return refusal === undefined ? go(reply, next) : refuse(reply, refusal, next);
    }
    const { value, session } = newSession(now(), {
      lifetimeMs: sessionLifetimeMs,
      userAgent: req.headers["user-agent"],
    });
    const signedIn = await signInAs(identity, { session, address: addressOf(req) }, options);
    if (signedIn.outcome === "refused") {
      return refuse(reply, signedIn.reason, next);
    }
    const { expiresAtMs } = session;
    reply.header("set-cookie", writeSessionCookie(value, { secure, expiresAtMs }));
    return go(reply, signedIn.ended === undefined ? next : tellingPath(signedIn.ended, next));
  } catch (err) {
    const denied = err instanceof SignInDenied;
    requestLog(req)[denied ? "info" : "warn"]({ err }, "a sign-in by OpenID Connect failed");
    return refuse(reply, denied ? "denied" : "failed", next);
  }
}

/** Confirms the presence of a session's person; the session may have ended or changed in the meantime. */
async function confirm(
  req: FastifyRequest,
  { identity, confirms, beganAtMs }: PendingSignIn & { readonly identity: Identity },
  options: Way,
): Promise<Word | undefined> {
  const session = await options.sessionOf(req);
  if (session?.sessionId !== confirms || session === undefined) {
    return "expired";
  }
  return confirmBy(identity, { session, beganAtMs, address: addressOf(req) }, options);
}

function refuse(reply: FastifyReply, refused: Word, next: string): FastifyReply {
  return go(reply, `/sign-in?${new URLSearchParams({ refused, next })}`);
}

/** The page that tells what ended with this sign-in, and leads on. */
function tellingPath(ended: EndedCredentials, next: string): string {
  return `/account-secured?${new URLSearchParams({
    password: String(ended.password),
    sessions: String(ended.sessions),
    personal_tokens: String(ended.personalTokens),
    organization_tokens: String(ended.organizationTokens),
    invitations: String(ended.invitations),
    next,
  })}`;
}

function go(reply: FastifyReply, url: string): FastifyReply {
  reply.headers({ "cache-control": "no-store", "referrer-policy": "no-referrer" });
  return reply.redirect(url, 302);
}

/**
 * A path of this server; anything else could redirect people to another site. One that begins with
 * two slashes would, and dots in it can come to that: `/.//evil.example`.
 */
function localPath(next: unknown): string {
  const base = "http://here.invalid";
  const isPath = typeof next === "string" && next.length < 2_000 && next.startsWith("/");
  const url = isPath && URL.canParse(next, base) ? new URL(next, base) : undefined;
  return url?.origin === base && !url.pathname.startsWith("//")
    ? `${url.pathname}${url.search}${url.hash}`
    : "/";
}

/** IPv4 over an IPv6 socket is IPv4 (RFC 4291, section 2.5.5.2). */
function addressOf({ ip }: FastifyRequest): string {
  return ip.replace(/^::ffff:(?=\d+\.)/i, "");
}

// The sealed cookie that carries a sign-in while the person is at the provider.
// The seal prevents that a browser continues a sign-in that it did not begin.
// The cookie lives for ten minutes. Over https no other host can plant one
// either: see auth/session-cookie.ts.

/** A sign-in in progress. */
interface PendingSignIn extends Flow {
  /** The path that the person wanted to open. */
  readonly next: string;
  /** The session whose person is to confirm their presence; absent for a new sign-in. */
  readonly confirms?: string;
}

interface FlowCookieOptions {
  readonly keys: KeyRing;
  readonly secure: boolean;
  readonly nowMs: number;
}

/** The `Set-Cookie` header that stores a sign-in. */
function writeFlowCookie(
  pending: PendingSignIn,
  { keys, secure, nowMs }: FlowCookieOptions,
): string {
  const text = JSON.stringify({ ...pending, expiresAtMs: nowMs + OIDC_SIGN_IN_LIFETIME_MS });
  return setCookie(keys.seal(text, CONTEXT), OIDC_SIGN_IN_LIFETIME_MS / 1000, secure);
}

/** The `Set-Cookie` header that deletes it. */
function clearFlowCookie(secure: boolean): string {
  return setCookie("", 0, secure);
}

/** The sign-in of a `Cookie` header; undefined if absent or expired. */
function readFlowCookie(
  header: string | undefined,
  { keys, secure, nowMs }: FlowCookieOptions,
): PendingSignIn | undefined {
  const [sealed] = cookieValues(header, nameOf(secure));
  if (!sealed) {
    return undefined;
  }
  let text: string;
  try {
    text = keys.unseal(sealed, CONTEXT);
  } catch {
    // Not sealed by this platform, or by keys that are gone: treated as absent.
    return undefined;
  }
  // Only `writeFlowCookie` seals values in this context.
  const pending = JSON.parse(text) as PendingSignIn & { readonly expiresAtMs: number };
  return pending.expiresAtMs > nowMs ? pending : undefined;
}

function setCookie(value: string, maxAgeSeconds: number, secure: boolean): string {
  const attributes = `Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax`;
  // The prefix `__Host-` requires the path `/`.
  const path = secure ? "/" : "/auth/oidc";
  return `${nameOf(secure)}=${value}; Path=${path}; ${attributes}${secure ? "; Secure" : ""}`;
}

function nameOf(secure: boolean): string {
  return secure ? `__Host-${NAME}` : NAME;
}
