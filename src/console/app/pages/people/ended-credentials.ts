/** What ended when a person proved the address of an account, as the address of the page says it. */
import type { EndedCredentialsJson } from "../../../../../gen/tessera/v1/auth_pb.js";

/** What is counted, by its name in the address; the server writes the same after a sign-in. */
export const COUNTS = [
  ["sessions", "Sessions"],
  ["personal_tokens", "Personal tokens"],
  ["organization_tokens", "Tokens made for an organization"],
  ["invitations", "Open invitations"],
] as const;

/** The address of the page that says what ended. */
export function securedPath(ended: EndedCredentialsJson): string {
  const query = new URLSearchParams({
    password: String(ended.password ?? false),
    sessions: String(ended.sessions ?? 0),
    personal_tokens: String(ended.personalTokens ?? 0),
    organization_tokens: String(ended.organizationTokens ?? 0),
    invitations: String(ended.invitations ?? 0),
  });
  return `/account-secured?${query}`;
}
