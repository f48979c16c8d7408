import { expect } from "vitest";
import { cookieOf, PASSWORD, type Platform } from "./platform.ts";

/** Invites somebody who joins, as a member unless told otherwise; answers the cookie of their session. */
export async function joinedMember(
  platform: Platform,
  adminCookie: Record<string, string>,
  invitation: { readonly email: string; readonly role?: "admin" },
): Promise<Record<string, string>> {
  const invited = await platform.call("/api/v1/members:invite", invitation, adminCookie);
  const answer = await platform.call("/api/v1/auth:acceptInvitation", {
    invitation_code: new URL(String(invited.json.url)).hash.replace("#code=", ""),
    password: PASSWORD,
  });
  expect(answer.status, JSON.stringify(answer.json)).toBe(200);
  return cookieOf(answer);
}

/** Invites somebody who joins as a member; answers a personal token of theirs. */
export async function memberToken(
  platform: Platform,
  adminCookie: Record<string, string>,
  email: string,
): Promise<string> {
  const cookie = await joinedMember(platform, adminCookie, { email });
  return (await platform.createToken(cookie)).value;
}
