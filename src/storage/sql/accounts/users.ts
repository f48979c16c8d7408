/** Creates, finds and names people, and links their identities. */
import type { Accounts } from "../../accounts/accounts.ts";
import type { User } from "../../accounts/people.ts";
import { type Operation, query } from "../operation.ts";
import { recordForUser } from "./audit.ts";
import { announce } from "./changes.ts";

interface UserRow {
  readonly user_id: string;
  readonly email: string;
  readonly display_name: string;
  readonly password_hash: string | null;
  readonly email_verified: number;
  readonly operator: number;
  readonly created_at_ms: number;
}

const SELECT =
  "SELECT u.user_id, u.email, u.display_name, u.password_hash, u.email_verified, " +
  "u.operator, u.created_at_ms FROM users u";

function toUser(row: UserRow | undefined): User | undefined {
  return (
    row && {
      userId: row.user_id,
      email: row.email,
      displayName: row.display_name,
      passwordHash: row.password_hash ?? undefined,
      emailVerified: row.email_verified === 1,
      operator: row.operator === 1,
      createdAtMs: row.created_at_ms,
    }
  );
}

/** Inserts a person; false when the e-mail address is taken. */
export function* insertUser(user: {
  readonly userId: string;
  readonly email: string;
  readonly displayName: string;
  readonly passwordHash?: string;
  readonly emailVerified: boolean;
  /** Default false. */
  readonly operator?: boolean;
  readonly nowMs: number;
}): Operation<boolean> {
  const rows = yield* query(
    `INSERT INTO users
       (user_id, email, display_name, password_hash, email_verified, operator, created_at_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (email) DO NOTHING RETURNING user_id`,
    user.userId,
    user.email,
    user.displayName,
    user.passwordHash,
    user.emailVerified,
    user.operator ?? false,
    user.nowMs,
  );
  return rows.length > 0;
}

export function* findUser(
  parameters: Parameters<Accounts["findUser"]>[0],
): Operation<User | undefined> {
  const [column, value] =
    "email" in parameters ? ["email", parameters.email] : ["user_id", parameters.userId];
  const [row] = yield* query<UserRow>(`${SELECT} WHERE u.${column} = ?`, value);
  return toUser(row);
}

/**
 * Whether the password is still the one with this hash; it stays so until the
 * transaction ends, because the person's row is locked by an update. So what a
 * password is proved for cannot come after the transaction that ends the
 * password, unseen by it.
 */
export function* lockPassword(userId: string, passwordHash: string): Operation<boolean> {
  const rows = yield* query(
    `UPDATE users SET password_hash = password_hash WHERE user_id = ? AND password_hash = ?
     RETURNING user_id`,
    userId,
    passwordHash,
  );
  return rows.length > 0;
}

export function* findIdentity({
  issuer,
  subject,
}: Parameters<Accounts["findIdentity"]>[0]): Operation<User | undefined> {
  const [row] = yield* query<UserRow>(
    `${SELECT} JOIN identities i ON i.user_id = u.user_id WHERE i.issuer = ? AND i.subject = ?`,
    issuer,
    subject,
  );
  return toUser(row);
}

/** Links an identity; an existing link stays as it is. */
export function* linkIdentity(
  parameters: Parameters<Accounts["linkIdentity"]>[0],
): Operation<void> {
  const { issuer, subject, userId } = parameters;
  const linked = yield* query(
    `INSERT INTO identities (issuer, subject, user_id) VALUES (?, ?, ?)
     ON CONFLICT (issuer, subject) DO NOTHING RETURNING user_id`,
    issuer,
    subject,
    userId,
  );
  if (linked.length > 0) {
    yield* recordForUser(parameters, userId, {
      action: "identity.link",
      subjectId: userId,
      subject: parameters.by.name,
      details: { issuer },
    });
  }
}

export function* changeDisplayName(
  parameters: Parameters<Accounts["changeDisplayName"]>[0],
): Operation<boolean> {
  const { userId, displayName, nowMs } = parameters;
  const [user] = yield* query<{ email: string }>(
    "UPDATE users SET display_name = ? WHERE user_id = ? RETURNING email",
    displayName,
    userId,
  );
  if (user === undefined) {
    return false;
  }
  yield* recordForUser(parameters, userId, {
    action: "display_name.change",
    subjectId: userId,
    subject: user.email,
    details: { display_name: displayName },
  });
  yield* announce(nowMs, { kind: "user", id: userId });
  return true;
}

export function* setOperator(
  parameters: Parameters<Accounts["setOperator"]>[0],
): Operation<boolean> {
  const { userId, operator, nowMs } = parameters;
  const [user] = yield* query<{ email: string }>(
    "UPDATE users SET operator = ? WHERE user_id = ? RETURNING email",
    operator,
    userId,
  );
  if (user === undefined) {
    return false;
  }
  yield* recordForUser(parameters, userId, {
    action: operator ? "operator.grant" : "operator.revoke",
    subjectId: userId,
    subject: user.email,
  });
  yield* announce(nowMs, { kind: "user", id: userId });
  return true;
}

/** Operators that are listed: far more than run one platform. */
const MAX_LISTED_OPERATORS = 1_000;

export function* listOperators(): Operation<User[]> {
  const rows = yield* query<UserRow>(
    `${SELECT} WHERE u.operator = 1 ORDER BY u.email LIMIT ${MAX_LISTED_OPERATORS}`,
  );
  return rows.map(toUser).filter((user) => user !== undefined);
}

export function* recordFailedSignIn(
  parameters: Parameters<Accounts["recordFailedSignIn"]>[0],
): Operation<void> {
  const user = yield* findUser({ email: parameters.email });
  if (user !== undefined) {
    yield* recordForUser(parameters, user.userId, {
      action: "sign_in.failed",
      subjectId: user.userId,
      subject: user.email,
      ...(parameters.details && { details: parameters.details }),
    });
  }
}
