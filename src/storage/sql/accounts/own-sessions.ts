/** The sessions of a person, as they see them: lists and ends them, and records their use. */
import type { Accounts } from "../../accounts/accounts.ts";
import type { Page } from "../../accounts/page.ts";
import type { ListedSession } from "../../accounts/people.ts";
import { type Operation, query } from "../operation.ts";
import { recordForUser } from "./audit.ts";
import { announce } from "./changes.ts";
import { toPage } from "./rows.ts";

interface ListedRow {
  readonly session_id: string;
  readonly client: string;
  readonly address: string;
  readonly created_at_ms: number;
  readonly used_at_ms: number | null;
  readonly expires_at_ms: number;
}

/** The ids of sessions begin with their time, so the newest is the highest. */
export function* listSessions({
  userId,
  nowMs,
  limit,
  after,
}: Parameters<Accounts["listSessions"]>[0]): Operation<Page<ListedSession>> {
  const rows = yield* query<ListedRow>(
    `SELECT session_id, client, address, created_at_ms, used_at_ms, expires_at_ms
     FROM sessions WHERE user_id = ? AND expires_at_ms > ?
       ${after === undefined ? "" : "AND session_id < ?"}
     ORDER BY session_id DESC LIMIT ?`,
    userId,
    nowMs,
    ...(after === undefined ? [] : [after]),
    limit + 1,
  );
  return toPage(rows.map(toListed), limit, ({ sessionId }) => sessionId);
}

function toListed(row: ListedRow): ListedSession {
  return {
    sessionId: row.session_id,
    client: row.client,
    address: row.address,
    createdAtMs: row.created_at_ms,
    usedAtMs: row.used_at_ms ?? undefined,
    expiresAtMs: row.expires_at_ms,
  };
}

export function* endSessions(
  parameters: Parameters<Accounts["endSessions"]>[0],
): Operation<number> {
  const { userId, which, nowMs, by } = parameters;
  const [condition, id] =
    "only" in which ? ["session_id = ?", which.only] : ["session_id <> ?", which.allBut];
  const ended = yield* query<{ session_id: string }>(
    `DELETE FROM sessions WHERE user_id = ? AND ${condition} RETURNING session_id`,
    userId,
    id,
  );
  if (ended.length === 0) {
    return 0;
  }
  yield* query("DELETE FROM login_codes WHERE user_id = ?", userId);
  yield* query("DELETE FROM device_logins WHERE user_id = ?", userId);
  yield* recordForUser(parameters, userId, {
    action: "session.end",
    subjectId: userId,
    subject: by.name,
    details: { sessions_ended: String(ended.length) },
  });
  yield* announce(
    nowMs,
    ...ended.map(({ session_id: sessionId }) => ({ kind: "session", id: sessionId }) as const),
  );
  return ended.length;
}

export function* recordSessionUse({
  sessionId,
  timeMs,
  address,
}: Parameters<Accounts["recordSessionUse"]>[0]): Operation<void> {
  yield* query(
    `UPDATE sessions SET used_at_ms = ?, address = ?
     WHERE session_id = ? AND (used_at_ms IS NULL OR used_at_ms < ?)`,
    timeMs,
    address,
    sessionId,
    timeMs,
  );
}
