/** Gives a browser its session, and takes it away. */
import type { HandlerContext } from "@connectrpc/connect";
import { clearSessionCookie, writeSessionCookie } from "../auth/sessions.ts";
import type { Organizations } from "../storage/accounts/organizations.ts";
import type { NewSession, People } from "../storage/accounts/people.ts";
import { toPrincipalMessage } from "./principal-messages.ts";

interface GivenSession {
  readonly accounts: Pick<People, "findSession"> & Pick<Organizations, "findOrganization">;
  readonly secureCookies: boolean;
  readonly now: () => number;
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
  const cookie = writeSessionCookie(value, { secure: secureCookies, expiresAtMs });
  ctx.responseHeader.append("set-cookie", cookie);
  ctx.responseHeader.set("cache-control", "no-store");
  return toPrincipalMessage(found, accounts);
}

export function takeSession(
  ctx: HandlerContext,
  { secureCookies }: Pick<GivenSession, "secureCookies">,
): void {
  ctx.responseHeader.append("set-cookie", clearSessionCookie({ secure: secureCookies }));
}
