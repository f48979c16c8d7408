/** Deletes the tokens that a person has or has made, with their values. */
import { type Operation, query } from "../operation.ts";

/**
 * Deletes all personal tokens of a leaving member; returns their ids. Requires
 * the organization's lock.
 */
export function* deletePersonalTokens(organizationId: string, userId: string): Operation<string[]> {
  const theirs = "organization_id = ? AND user_id = ? AND kind = 'personal'";
  return yield* deleteTokens(organizationId, theirs, [organizationId, userId]);
}

/**
 * Deletes the organization tokens that a person has made, by themselves or by
 * a personal token; returns their ids. Requires the organization's lock.
 */
export function* deleteOrganizationTokensOf(
  organizationId: string,
  { userId, email }: { readonly userId: string; readonly email: string },
): Operation<string[]> {
  const theirs =
    "organization_id = ? AND kind = 'organization' AND (user_id = ? OR created_by = ?)";
  return yield* deleteTokens(organizationId, theirs, [organizationId, userId, email]);
}

function* deleteTokens(
  organizationId: string,
  which: string,
  values: readonly string[],
): Operation<string[]> {
  for (const table of ["token_deployments", "token_secrets"]) {
    yield* query(
      `DELETE FROM ${table} WHERE organization_id = ?
         AND token_id IN (SELECT token_id FROM tokens WHERE ${which})`,
      organizationId,
      ...values,
    );
  }
  const rows = yield* query<{ token_id: string }>(
    `DELETE FROM tokens WHERE ${which} RETURNING token_id`,
    ...values,
  );
  return rows.map((row) => row.token_id);
}
