/** Deletes the tokens that a person has or has made, with their values. */
import { type Operation, query } from "../operation.ts";
import { keepNames } from "./kept-names.ts";

/**
 * Deletes all personal tokens of a leaving member; returns their ids. Requires
 * the organization's lock.
 */
export function* deletePersonalTokens(
  organizationId: string,
  { userId, nowMs }: { readonly userId: string; readonly nowMs: number },
): Operation<string[]> {
  const theirs = "organization_id = ? AND user_id = ? AND kind = 'personal'";
  return yield* deleteTokens(organizationId, theirs, { values: [organizationId, userId], nowMs });
}

/**
 * Deletes the organization tokens that a person has made, by themselves or by
 * a personal token; returns their ids. Requires the organization's lock.
 */
export function* deleteOrganizationTokensOf(
  organizationId: string,
  {
    userId,
    email,
    nowMs,
  }: { readonly userId: string; readonly email: string; readonly nowMs: number },
): Operation<string[]> {
  const theirs =
    "organization_id = ? AND kind = 'organization' AND (user_id = ? OR created_by = ?)";
  return yield* deleteTokens(organizationId, theirs, {
    values: [organizationId, userId, email],
    nowMs,
  });
}

function* deleteTokens(
  organizationId: string,
  which: string,
  { values, nowMs }: { readonly values: readonly string[]; readonly nowMs: number },
): Operation<string[]> {
  for (const table of ["token_deployments", "token_secrets"]) {
    yield* query(
      `DELETE FROM ${table} WHERE organization_id = ?
         AND token_id IN (SELECT token_id FROM tokens WHERE ${which})`,
      organizationId,
      ...values,
    );
  }
  const rows = yield* query<{ id: string; name: string; kind: string }>(
    `DELETE FROM tokens WHERE ${which} RETURNING token_id AS id, name, kind`,
    ...values,
  );
  yield* keepNames(organizationId, rows, nowMs);
  return rows.map(({ id }) => id);
}
