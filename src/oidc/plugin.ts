/**
 * The browser's way through a provider: `/auth/oidc/start` sends it there,
 * `/auth/oidc/callback` takes it back and signs the person in. What goes wrong
 * is said by the sign-in page, which gets a word for it and no detail.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { KeyRing } from "../auth/keys.ts";
import { newSession, writeSessionCookie } from "../auth/sessions.ts";
import type { Accounts } from "../storage/accounts/accounts.ts";
import { clearFlowCookie, readFlowCookie, writeFlowCookie } from "./flow-cookie.ts";
import { type OidcProvider, SignInDenied } from "./provider.ts";
import { type Refusal, type SignInOptions, signInAs } from "./sign-in.ts";

export interface OidcOptions extends SignInOptions {
  readonly provider: OidcProvider;
  /** What people call it. */
  readonly name: string;
  readonly keys: KeyRing;
  /** Whether browsers reach the platform over TLS. */
  readonly secure: boolean;
  readonly sessionLifetimeMs: number;
}

/** Why the sign-in page is shown once more. */
type Word = Refusal | "denied" | "expired" | "failed";

export interface SignInPageOptions {
  readonly accounts: Pick<Accounts, "needsSetup">;
  /** Undefined: by password only. */
  readonly oidc: OidcOptions | undefined;
}

/** What the sign-in page asks: the ways there are, and whether anyone has an account yet. */
export async function signInMethods(
  app: FastifyInstance,
  { accounts, oidc }: SignInPageOptions,
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
    app.get("/auth/oidc/start", (req, reply) => start(req, reply, oidc));
    app.get("/auth/oidc/callback", (req, reply) => callback(req, reply, oidc));
  }
}

async function start(
  req: FastifyRequest,
  reply: FastifyReply,
  { provider, keys, secure, now }: OidcOptions,
): Promise<FastifyReply> {
  const next = localPath((req.query as { readonly next?: unknown }).next);
  try {
    const { url, flow } = await provider.begin();
    reply.header("set-cookie", writeFlowCookie({ ...flow, next }, { keys, secure, nowMs: now() }));
    return go(reply, url);
  } catch (err) {
    req.log.warn({ err }, "the OpenID Connect provider cannot be asked");
    return refuse(reply, "failed", next);
  }
}

async function callback(
  req: FastifyRequest,
  reply: FastifyReply,
  options: OidcOptions,
): Promise<FastifyReply> {
  const { provider, keys, secure, now, sessionLifetimeMs } = options;
  const pending = readFlowCookie(req.headers.cookie, { keys, nowMs: now() });
  // Good for one answer, whichever it is.
  reply.header("set-cookie", clearFlowCookie(secure));
  if (pending === undefined) {
    return refuse(reply, "expired", "/");
  }
  const { next } = pending;
  try {
    const identity = await provider.finish(req.url.slice(req.url.indexOf("?")), pending);
    const { value, session } = newSession(now(), sessionLifetimeMs);
    const refusal = await signInAs(identity, { session, address: addressOf(req) }, options);
    if (refusal !== undefined) {
      return refuse(reply, refusal, next);
    }
    const { expiresAtMs } = session;
    reply.header("set-cookie", writeSessionCookie(value, { secure, expiresAtMs }));
    return go(reply, next);
  } catch (err) {
    const denied = err instanceof SignInDenied;
    req.log[denied ? "info" : "warn"]({ err }, "a sign-in by OpenID Connect failed");
    return refuse(reply, denied ? "denied" : "failed", next);
  }
}

function refuse(reply: FastifyReply, refused: Word, next: string): FastifyReply {
  return go(reply, `/sign-in?${new URLSearchParams({ refused, next })}`);
}

function go(reply: FastifyReply, url: string): FastifyReply {
  reply.headers({ "cache-control": "no-store", "referrer-policy": "no-referrer" });
  return reply.redirect(url, 302);
}

/** A path of this server: anything else could send people to another one. */
function localPath(next: unknown): string {
  const base = "http://here.invalid";
  const isPath = typeof next === "string" && next.length < 2_000 && next.startsWith("/");
  const url = isPath && URL.canParse(next, base) ? new URL(next, base) : undefined;
  return url?.origin === base ? `${url.pathname}${url.search}${url.hash}` : "/";
}

/** IPv4 over an IPv6 socket is IPv4 (RFC 4291, section 2.5.5.2). */
function addressOf({ ip }: FastifyRequest): string {
  return ip.replace(/^::ffff:(?=\d+\.)/i, "");
}
