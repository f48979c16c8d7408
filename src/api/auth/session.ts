/** Session cookies: sets and clears them. The cookie of a known device stays after a sign-out. */
import type { HandlerContext } from "@connectrpc/connect";
import {
  type DeviceOptions,
  newDeviceId,
  readDeviceCookie,
  writeDeviceCookie,
} from "../../auth/devices.ts";
import { isSecure, type SessionPrincipal } from "../../auth/principal.ts";
import { clearSessionCookie, newSession, writeSessionCookie } from "../../auth/session-cookie.ts";
import { callerOf } from "../../server/rpc/engine/caller.ts";
import type { Organizations } from "../../storage/accounts/organizations.ts";
import type { NewSession, People } from "../../storage/accounts/people.ts";
import { toPrincipalMessage } from "../principal-messages.ts";

interface KnownBrowser {
  readonly keys: DeviceOptions["keys"];
  readonly secureCookies: boolean;
  readonly now: () => number;
  /** The hash of the password that was used; undefined for a person without one. */
  readonly passwordHash: string | undefined;
}

interface GivenSession extends KnownBrowser {
  readonly accounts: Pick<People, "findSession"> & Pick<Organizations, "findOrganization">;
  /** The value of the cookie. */
  readonly value: string;
  /** The session as stored. */
  readonly session: NewSession;
}

/** The person of the session that a call came with. */
export function personOf(ctx: HandlerContext): SessionPrincipal {
  const { principal } = callerOf(ctx);
  if (principal.kind !== "session") {
    throw new Error("the method's access does not ask for a session");
  }
  return principal;
}

/** Creates a session for the program that makes this call; `giveSession` follows when it is stored. */
export function startSession(
  { requestHeader }: HandlerContext,
  { now, sessionLifetimeMs }: { readonly now: () => number; readonly sessionLifetimeMs?: number },
) {
  const userAgent = requestHeader.get("user-agent");
  return newSession(now(), { lifetimeMs: sessionLifetimeMs, userAgent });
}

/** Sets the cookie of a stored session and returns its person as a message. */
export async function giveSession(ctx: HandlerContext, given: GivenSession) {
  const { accounts, secureCookies, now, value, session } = given;
  const { digest, expiresAtMs } = session;
  const found = await accounts.findSession({ digest, nowMs: now() });
  if (found === undefined) {
    throw new Error("a session that was just opened is not there");
  }
  const secure = secureCookies || isSecure(ctx.values);
  const cookie = writeSessionCookie(value, { secure, expiresAtMs });
  ctx.responseHeader.append("set-cookie", cookie);
  await rememberBrowser(ctx, found.email, given);
  return toPrincipalMessage(found, accounts);
}

/** Sets the device cookie of this browser for an account; keeps the device's id if it has one. */
export async function rememberBrowser(
  ctx: HandlerContext,
  account: string,
  { keys, secureCookies, now, passwordHash }: KnownBrowser,
): Promise<void> {
  if (passwordHash === undefined) {
    return;
  }
  const secure = secureCookies || isSecure(ctx.values);
  const options = { keys, account, secure, nowMs: now() };
  const cookies = ctx.requestHeader.get("cookie");
  const id = (await readDeviceCookie(cookies, options, async () => passwordHash)) ?? newDeviceId();
  ctx.responseHeader.append("set-cookie", writeDeviceCookie({ id, passwordHash }, options));
}

/** Clears the session cookie. */
export function takeSession(
  ctx: HandlerContext,
  { secureCookies }: Pick<GivenSession, "secureCookies">,
): void {
  const secure = secureCookies || isSecure(ctx.values);
  ctx.responseHeader.append("set-cookie", clearSessionCookie({ secure }));
}
