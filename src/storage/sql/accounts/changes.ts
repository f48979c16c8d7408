/**
 * The log of change events, by which nodes invalidate their caches.
 *
 * A reader asks for everything after the last sequence that it has seen, so a
 * sequence must never become visible after a higher one. A database sequence
 * does not guarantee that: a transaction takes its number when it writes, and
 * others with higher numbers may commit first. So numbers come from a row whose
 * lock is held until the commit: the next transaction gets its number after
 * this one's changes are visible. Every change takes that lock, so a
 * transaction takes it last.
 */
import type { Accounts, Change } from "../../accounts/accounts.ts";
import { type Operation, pieces, placeholders, query } from "../operation.ts";

/** Changes of credentials written by one statement. */
const MAX_CHANGES_PER_STATEMENT = 50;

/** Writes change events; the last step of an operation that changes data which nodes cache. */
export function* announce(
  nowMs: number,
  ...changes: readonly Omit<Change, "sequence">[]
): Operation<void> {
  if (changes.length === 0) {
    return;
  }
  const [counter] = yield* query<{ value: number }>(
    "UPDATE counters SET value = value + ? WHERE name = 'changes' RETURNING value",
    changes.length,
  );
  const first = (counter?.value ?? 0) - changes.length + 1;
  const rows = changes.map(({ kind, id }, index) => [first + index, nowMs, kind, id]);
  for (const piece of pieces(rows, MAX_CHANGES_PER_STATEMENT)) {
    yield* query(
      `INSERT INTO changes (sequence, time_ms, kind, id) VALUES ${placeholders(piece.length, 4)}`,
      ...piece.flat(),
    );
  }
}

/** One statement, so that `latest` and the rows show the same state. */
const LIST = `
  SELECT sequence, kind, id FROM (
    SELECT sequence, kind, id FROM changes WHERE sequence > ? ORDER BY sequence LIMIT ?
  ) AS listed
  UNION ALL SELECT value, 'latest', '' FROM counters WHERE name = 'changes'`;

interface ChangeRow {
  readonly sequence: number;
  readonly kind: Change["kind"] | "latest";
  readonly id: string;
}

export function* listChanges({
  afterSequence,
  limit,
}: Parameters<Accounts["listChanges"]>[0]): Operation<{ changes: Change[]; latest: number }> {
  const rows = yield* query<ChangeRow>(LIST, afterSequence, limit);
  const changes = rows.flatMap(({ sequence, kind, id }) =>
    kind === "latest" ? [] : [{ sequence, kind, id }],
  );
  changes.sort((one, other) => one.sequence - other.sequence);
  return { changes, latest: rows.find(({ kind }) => kind === "latest")?.sequence ?? 0 };
}
