/** Opens, finds, confirms and closes sessions. */
import type { Accounts } from "../../accounts/accounts.ts";
import type { Deed } from "../../accounts/deed.ts";
import type { Membership, NewSession, Role, SessionRecord } from "../../accounts/people.ts";
import { type Operation, prepared, query } from "../operation.ts";
import { recordForUser } from "./audit.ts";
import { announce } from "./changes.ts";
import { lockPassword } from "./users.ts";

export function* insertSession({
  userId,
  session,
  nowMs,
  by,
}: Pick<Deed, "nowMs" | "by"> & {
  readonly userId: string;
  readonly session: NewSession;
}): Operation<void> {
  yield* query(
    `INSERT INTO sessions
       (session_id, digest, user_id, created_at_ms, authenticated_at_ms, expires_at_ms,
        client, address)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    session.sessionId,
    session.digest,
    userId,
    nowMs,
    session.authenticatedAtMs ?? nowMs,
    session.expiresAtMs,
    session.client ?? "",
    by.address,
  );
}

export function* openSession(
  parameters: Parameters<Accounts["openSession"]>[0],
): Operation<boolean> {
  const { userId, by, passwordHash } = parameters;
  if (passwordHash !== undefined && !(yield* lockPassword(userId, passwordHash))) {
    return false;
  }
  yield* insertSession(parameters);
  yield* recordForUser(parameters, userId, {
    action: "sign_in",
    subjectId: userId,
    subject: by.name,
  });
  return true;
}

interface SessionRow {
  readonly session_id: string;
  readonly user_id: string;
  readonly email: string;
  readonly display_name: string;
  readonly operator: number;
  readonly created_at_ms: number;
  readonly authenticated_at_ms: number;
  readonly used_at_ms: number | null;
  readonly expires_at_ms: number;
  /** `<id> <name> <role>` of each, with commas between. */
  readonly memberships: string | null;
}

const SELECT = `
  SELECT s.session_id, s.user_id, u.email, u.display_name, u.operator, s.created_at_ms, s.authenticated_at_ms,
    s.used_at_ms, s.expires_at_ms,
    (SELECT string_agg(o.organization_id || ' ' || o.name || ' ' || m.role, ',')
     FROM memberships m JOIN organizations o ON o.organization_id = m.organization_id
     WHERE m.user_id = s.user_id) AS memberships
  FROM sessions s JOIN users u ON u.user_id = s.user_id`;

const FIND = `${SELECT}
  WHERE s.digest = ? AND s.expires_at_ms > ?`;

const FIND_BY_ID = `${SELECT}
  WHERE s.session_id = ? AND s.expires_at_ms > ?`;

export function* findSession({
  digest,
  nowMs,
}: Parameters<Accounts["findSession"]>[0]): Operation<SessionRecord | undefined> {
  const [row] = yield* prepared<SessionRow>("find_session", FIND, digest, nowMs);
  return row && toSession(row);
}

export function* findSessionOf({
  sessionId,
  nowMs,
}: Parameters<Accounts["findSessionOf"]>[0]): Operation<SessionRecord | undefined> {
  const [row] = yield* prepared<SessionRow>("find_session_by_id", FIND_BY_ID, sessionId, nowMs);
  return row && toSession(row);
}

function toSession(row: SessionRow): SessionRecord {
  return {
    kind: "session",
    sessionId: row.session_id,
    userId: row.user_id,
    email: row.email,
    displayName: row.display_name,
    memberships: toMemberships(row.memberships),
    operator: row.operator === 1,
    createdAtMs: row.created_at_ms,
    authenticatedAtMs: row.authenticated_at_ms,
    usedAtMs: row.used_at_ms ?? undefined,
    expiresAtMs: row.expires_at_ms,
  };
}

/** Parses memberships, sorted by name. Ids, names and roles contain no space or comma. */
function toMemberships(text: string | null): Membership[] {
  const memberships = (text?.split(",") ?? []).map((membership) => {
    const [organizationId = "", organization = "", role] = membership.split(" ");
    return { organizationId, organization, role: role as Role };
  });
  return memberships.sort((one, other) => (one.organization < other.organization ? -1 : 1));
}

export function* confirmSession({
  sessionId,
  nowMs,
}: Parameters<Accounts["confirmSession"]>[0]): Operation<void> {
  const confirmed = yield* query(
    `UPDATE sessions SET authenticated_at_ms = ? WHERE session_id = ? AND authenticated_at_ms < ?
     RETURNING session_id`,
    nowMs,
    sessionId,
    nowMs,
  );
  if (confirmed.length > 0) {
    yield* announce(nowMs, { kind: "session", id: sessionId });
  }
}

export function* closeSession(
  parameters: Parameters<Accounts["closeSession"]>[0],
): Operation<void> {
  const { sessionId, nowMs, by } = parameters;
  const [closed] = yield* query<{ user_id: string }>(
    "DELETE FROM sessions WHERE session_id = ? RETURNING user_id",
    sessionId,
  );
  if (closed !== undefined) {
    yield* recordForUser(parameters, closed.user_id, {
      action: "sign_out",
      subjectId: closed.user_id,
      subject: by.name,
    });
    yield* announce(nowMs, { kind: "session", id: sessionId });
  }
}
