/**
 * Checks that the credential of an actor has not ended since the caller was
 * authenticated. What makes another credential asks, under the organization's
 * lock, which those that end credentials take as well: so nothing that a
 * session or a token was about to make outlives it.
 */
import type { Deed } from "../../accounts/deed.ts";
import { type Operation, query } from "../operation.ts";

/** Whether the session or the personal token still exists. Requires the organization's lock. */
export function* isCredentialThere({ by }: Deed, organizationId: string): Operation<boolean> {
  if (by.token !== undefined) {
    const rows = yield* query(
      "SELECT token_id FROM tokens WHERE organization_id = ? AND token_id = ?",
      organizationId,
      by.token.id,
    );
    return rows.length > 0;
  }
  if (by.sessionId !== undefined) {
    const rows = yield* query("SELECT session_id FROM sessions WHERE session_id = ?", by.sessionId);
    return rows.length > 0;
  }
  return true;
}
