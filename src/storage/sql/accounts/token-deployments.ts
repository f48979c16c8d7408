import { type Operation, pieces, placeholders, query } from "../operation.ts";

/** Names in one statement. */
const MAX_AT_ONCE = 100;

/** Those of the names that the organization has no deployment for. */
export function* unknownDeployments(
  organizationId: string,
  names: readonly string[],
): Operation<string[]> {
  const known = new Set<string>();
  for (const piece of pieces(names, MAX_AT_ONCE)) {
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

/** Makes these, which all exist, the deployments of a token. */
export function* setDeployments(
  { organizationId, tokenId }: { readonly organizationId: string; readonly tokenId: string },
  names: readonly string[],
): Operation<void> {
  yield* query(
    "DELETE FROM token_deployments WHERE organization_id = ? AND token_id = ?",
    organizationId,
    tokenId,
  );
  for (const piece of pieces([...new Set(names)], MAX_AT_ONCE)) {
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
