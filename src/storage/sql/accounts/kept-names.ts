/** The names of deployments and tokens that were deleted: usage is told by them. */
import { dayOf } from "../../days.ts";
import { type Operation, pieces, placeholders, query } from "../operation.ts";

/** Names that one statement writes. */
const MAX_NAMES_PER_STATEMENT = 100;

/** Keeps the names of what is deleted, because its use is told on. */
export function* keepNames(
  organizationId: string,
  deleted: readonly { readonly id: string; readonly name: string; readonly kind: string }[],
  nowMs: number,
): Operation<void> {
  for (const piece of pieces(deleted, MAX_NAMES_PER_STATEMENT)) {
    yield* query(
      `INSERT INTO usage_names (organization_id, id, kind, name, day)
       VALUES ${placeholders(piece.length, 5)} ON CONFLICT DO NOTHING`,
      ...piece.flatMap(({ id, kind, name }) => [organizationId, id, kind, name, dayOf(nowMs)]),
    );
  }
}
