/** Gives a browser its session, and takes it away; that it was known here stays. */
import type { HandlerContext } from "@connectrpc/connect";
import {
  type DeviceOptions,
  newDeviceId,
  readDeviceCookie,
  writeDeviceCookie,
} from "../../../auth/devices.ts";
import { isSecure } from "../../../auth/principal.ts";
import { clearSessionCookie, writeSessionCookie } from "../../../auth/sessions.ts";
import type { Organizations } from "../../../storage/accounts/organizations.ts";
import type { NewSession, People } from "../../../storage/accounts/people.ts";
import { toPrincipalMessage } from "../principal-messages.ts";

interface KnownBrowser {
  readonly keys: DeviceOptions["keys"];
  readonly secureCookies: boolean;
  readonly now: () => number;
  /** Of the password that was given here; undefined for a person without one. */
  readonly passwordHash: string | undefined;
}

interface GivenSession extends KnownBrowser {
  readonly accounts: Pick<People, "findSession"> & Pick<Organizations, "findOrganization">;
  /** For the cookie. */
  readonly value: string;
  /** As it was stored. */
  readonly session: NewSession;
}

/** Sets the cookie of a session that has been stored, and answers whose it is. */
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
  ctx.responseHeader.set("cache-control", "no-store");
  return toPrincipalMessage(found, accounts);
}

/** Sets the cookie by which this browser is known for an account, under the id that it has there, if any. */
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

export function takeSession(
  ctx: HandlerContext,
  { secureCookies }: Pick<GivenSession, "secureCookies">,
): void {
  const secure = secureCookies || isSecure(ctx.values);
  ctx.responseHeader.append("set-cookie", clearSessionCookie({ secure }));
}
