/**
 * Device logins (RFC 8628): a program polls with a device code until a person
 * has decided on its user code. The transaction that deletes an approved login
 * has redeemed it.
 *
 * A poll without a decision locks only the login's row. A poll that finds an
 * approval first takes the organization's lock, in the usual order.
 */
import type { Accounts } from "../../accounts/accounts.ts";
import type { DeviceLoginRecord, Logins } from "../../accounts/logins.ts";
import { type Operation, query } from "../operation.ts";
import { isCredentialThere } from "./acting-credential.ts";
import { record } from "./audit.ts";
import { lockOrganization, lockPlatform } from "./locks.ts";
import { endLogin } from "./login-codes.ts";
import { findMember } from "./members.ts";

/**
 * How much the interval grows for a program that polls for a device login too soon (RFC 8628,
 * section 3.5).
 */
const DEVICE_POLL_SLOW_DOWN_MS = 5_000;

/** Returns false for a duplicate user code too: the caller then draws another one. */
export function* createDeviceLogin(
  parameters: Parameters<Accounts["createDeviceLogin"]>[0],
): Operation<boolean> {
  const { deviceDigest, userCodeDigest, nowMs, expiresAtMs, limit } = parameters;
  yield* lockPlatform("device_logins");
  const [waiting] = yield* query<{ count: number }>(
    "SELECT count(*) AS count FROM device_logins WHERE expires_at_ms > ?",
    nowMs,
  );
  if ((waiting?.count ?? 0) >= limit) {
    return false;
  }
  yield* query(
    "DELETE FROM device_logins WHERE user_code_digest = ? AND expires_at_ms <= ?",
    userCodeDigest,
    nowMs,
  );
  const created = yield* query(
    `INSERT INTO device_logins (device_digest, user_code_digest, host_name, address,
       created_at_ms, expires_at_ms, interval_ms, asked_at_ms, answer)
     VALUES (?, ?, ?, ?, ?, ?, ?, 0, 'pending')
     ON CONFLICT (user_code_digest) DO NOTHING RETURNING device_digest`,
    deviceDigest,
    userCodeDigest,
    parameters.hostName,
    parameters.address,
    nowMs,
    expiresAtMs,
    parameters.intervalMs,
  );
  return created.length > 0;
}

interface WaitingRow {
  readonly host_name: string;
  readonly address: string;
  readonly created_at_ms: number;
  readonly expires_at_ms: number;
}

export function* findDeviceLogin({
  userCodeDigest,
  nowMs,
}: Parameters<Accounts["findDeviceLogin"]>[0]): Operation<DeviceLoginRecord | undefined> {
  const [row] = yield* query<WaitingRow>(
    `SELECT host_name, address, created_at_ms, expires_at_ms FROM device_logins
     WHERE user_code_digest = ? AND answer = 'pending' AND expires_at_ms > ?`,
    userCodeDigest,
    nowMs,
  );
  return (
    row && {
      hostName: row.host_name,
      address: row.address,
      createdAtMs: row.created_at_ms,
      expiresAtMs: row.expires_at_ms,
    }
  );
}

export function* answerDeviceLogin(
  parameters: Parameters<Accounts["answerDeviceLogin"]>[0],
): Operation<boolean> {
  const { userCodeDigest, approve, userId, organizationId, nowMs } = parameters;
  yield* lockOrganization(organizationId);
  const member = yield* findMember(organizationId, userId);
  if (member === undefined || !(yield* isCredentialThere(parameters, organizationId))) {
    return false;
  }
  const [answered] = yield* query<{ host_name: string; address: string }>(
    `UPDATE device_logins SET answer = ?, organization_id = ?, user_id = ?
     WHERE user_code_digest = ? AND answer = 'pending' AND expires_at_ms > ?
     RETURNING host_name, address`,
    approve ? "approved" : "denied",
    organizationId,
    userId,
    userCodeDigest,
    nowMs,
  );
  if (answered === undefined) {
    return false;
  }
  yield* record(parameters, organizationId, {
    action: approve ? "login.approve" : "login.deny",
    subjectId: userId,
    subject: member.email,
    details: { host_name: answered.host_name, asked_from: answered.address },
  });
  return true;
}

interface AskingRow {
  readonly host_name: string;
  readonly answer: "pending" | "approved" | "denied";
  readonly organization_id: string | null;
  readonly user_id: string | null;
  readonly expires_at_ms: number;
}

export function* redeemDeviceLogin(
  parameters: Parameters<Accounts["redeemDeviceLogin"]>[0],
): Operation<Awaited<ReturnType<Logins["redeemDeviceLogin"]>>> {
  const { deviceDigest, nowMs } = parameters;
  const [login] = yield* query<AskingRow>(
    `SELECT host_name, answer, organization_id, user_id, expires_at_ms FROM device_logins
     WHERE device_digest = ?`,
    deviceDigest,
  );
  if (login === undefined || login.expires_at_ms <= nowMs) {
    return { outcome: "invalid" };
  }
  const { organization_id: organizationId, user_id: userId, host_name: hostName } = login;
  if (organizationId !== null) {
    yield* lockOrganization(organizationId);
  }
  if (!(yield* mayAsk(deviceDigest, nowMs))) {
    return { outcome: "slow_down" };
  }
  if (organizationId === null || userId === null) {
    return { outcome: "pending" };
  }
  const [ended] = yield* query<{ answer: string }>(
    "DELETE FROM device_logins WHERE device_digest = ? RETURNING answer",
    deviceDigest,
  );
  switch (ended?.answer) {
    case "approved":
      return yield* endLogin(parameters, { organizationId, userId, hostName, way: "device" });
    case "denied":
      return { outcome: "denied" };
    default:
      return { outcome: "invalid" };
  }
}

/** Records a poll. After one that came too soon, the interval grows. */
function* mayAsk(deviceDigest: string, nowMs: number): Operation<boolean> {
  const asked = yield* query(
    `UPDATE device_logins SET asked_at_ms = ?
     WHERE device_digest = ? AND asked_at_ms + interval_ms <= ? RETURNING device_digest`,
    nowMs,
    deviceDigest,
    nowMs,
  );
  if (asked.length > 0) {
    return true;
  }
  const slowed = yield* query(
    `UPDATE device_logins SET asked_at_ms = ?, interval_ms = interval_ms + ${DEVICE_POLL_SLOW_DOWN_MS}
     WHERE device_digest = ? RETURNING device_digest`,
    nowMs,
    deviceDigest,
  );
  // Another poll has redeemed it in the meantime.
  return slowed.length === 0;
}
