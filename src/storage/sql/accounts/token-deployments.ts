/** The deployments that a token is limited to. */
import { type Operation, pieces, placeholders, query } from "../operation.ts";

/** Names of deployments in one statement. */
const MAX_NAMES_PER_STATEMENT = 100;

/** Returns the names without a deployment in the organization. */
export function* unknownDeployments(
  organizationId: string,
  names: readonly string[],
): Operation<string[]> {
  const known = new Set<string>();
  for (const piece of pieces(names, MAX_NAMES_PER_STATEMENT)) {
    const rows = yield* query<{ name: string }>(
      `SELECT name FROM deployments
       WHERE organization_id = ? AND name IN ${placeholders(1, piece.length)}`,
      organizationId,
      ...piece,
    );
    for (const { name } of rows) {
      known.add(name);
    }
  }
  return names.filter((name) => !known.has(name));
}

/** Replaces the deployments of a token; all of them exist. */
export function* setDeployments(
  { organizationId, tokenId }: { readonly organizationId: string; readonly tokenId: string },
  names: readonly string[],
): Operation<void> {
  yield* query(
    "DELETE FROM token_deployments WHERE organization_id = ? AND token_id = ?",
    organizationId,
    tokenId,
  );
  for (const piece of pieces([...new Set(names)], MAX_NAMES_PER_STATEMENT)) {
    yield* query(
      `INSERT INTO token_deployments (organization_id, token_id, deployment_id, name)
       SELECT organization_id, ?, deployment_id, name FROM deployments
       WHERE organization_id = ? AND name IN ${placeholders(1, piece.length)}`,
      tokenId,
      organizationId,
      ...piece,
    );
  }
}
