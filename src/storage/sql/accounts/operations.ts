/** The table of all operations of the accounts port. */
import type { Accounts } from "../../accounts/accounts.ts";
import { type Operation, type OperationsOf, query } from "../operation.ts";
import { listAuditEvents, recordAuditEvent } from "./audit.ts";
import { listChanges } from "./changes.ts";
import { findCredential, findCredentialOf, recordUses } from "./credential.ts";
import {
  createDeployment,
  deleteDeployment,
  findDeployment,
  listDeployments,
  updateDeployment,
} from "./deployments.ts";
import {
  answerDeviceLogin,
  createDeviceLogin,
  findDeviceLogin,
  redeemDeviceLogin,
} from "./device-logins.ts";
import {
  acceptInvitation,
  deleteInvitation,
  findInvitation,
  invite,
  listInvitations,
} from "./invitations.ts";
import { createLoginCode, redeemLoginCode } from "./login-codes.ts";
import { changeRole, listMembers, removeMember } from "./members.ts";
import {
  askForMonitoring,
  createOrganization,
  findOrganization,
  listOrganizations,
  updateOrganization,
} from "./organizations.ts";
import { endSessions, listSessions, recordSessionUse } from "./own-sessions.ts";
import {
  announceKeys,
  getSealed,
  listSealed,
  replaceDigest,
  replaceSealed,
  rotateToken,
} from "./secrets.ts";
import {
  closeSession,
  confirmSession,
  findSession,
  findSessionOf,
  openSession,
} from "./sessions.ts";
import { setPassword } from "./set-password.ts";
import { needsSetup, putSetupCode, setUp } from "./setup.ts";
import { getToken } from "./token-rows.ts";
import { createToken, deleteToken, listPersonalTokens, listTokens, updateToken } from "./tokens.ts";
import {
  changeDisplayName,
  findIdentity,
  findUser,
  linkIdentity,
  listOperators,
  recordFailedSignIn,
  setOperator,
} from "./users.ts";
import { verifyEmail } from "./verify-email.ts";

/** Operations with a single reading statement; they need no transaction. */
export const READS = {
  needsSetup,
  findUser,
  findIdentity,
  findSession,
  findSessionOf,
  listOperators,
  listSessions,
  findOrganization,
  listOrganizations,
  listMembers,
  listInvitations,
  findInvitation,
  findDeployment,
  listDeployments,
  listAuditEvents,
  getToken,
  listTokens,
  getSealed,
  findCredential,
  findCredentialOf,
  listSealed,
  findDeviceLogin,
  listChanges,
} as const satisfies Partial<OperationsOf<Accounts>>;

/** All operations of the port. */
export const ACCOUNT_OPERATIONS: OperationsOf<Accounts> = {
  ...READS,
  putSetupCode,
  setUp,
  linkIdentity,
  verifyEmail,
  changeDisplayName,
  setOperator,
  openSession,
  confirmSession,
  closeSession,
  endSessions,
  recordSessionUse,
  setPassword,
  recordFailedSignIn,
  createOrganization,
  updateOrganization,
  askForMonitoring,
  changeRole,
  removeMember,
  invite,
  deleteInvitation,
  acceptInvitation,
  createDeployment,
  updateDeployment,
  deleteDeployment,
  recordAuditEvent,
  createToken,
  listPersonalTokens,
  updateToken,
  deleteToken,
  rotateToken,
  replaceDigest,
  replaceSealed,
  announceKeys,
  recordUses,
  createLoginCode,
  redeemLoginCode,
  createDeviceLogin,
  answerDeviceLogin,
  redeemDeviceLogin,
  pruneAccounts,
};

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/**
 * What is deleted, and how long after its end. Change events are kept much
 * longer than any cache entry lives, and ended token values as long as people
 * may want to know when they ended. The audit log is kept for ever.
 */
const ENDED = [
  { table: "sessions", key: "session_id", end: "expires_at_ms", keptMs: DAY_MS },
  { table: "login_codes", key: "digest", end: "expires_at_ms", keptMs: HOUR_MS },
  { table: "device_logins", key: "device_digest", end: "expires_at_ms", keptMs: HOUR_MS },
  { table: "invitations", key: "invitation_id", end: "expires_at_ms", keptMs: 30 * DAY_MS },
  { table: "token_secrets", key: "digest", end: "valid_until_ms", keptMs: HOUR_MS },
  { table: "changes", key: "sequence", end: "time_ms", keptMs: HOUR_MS },
] as const;

/** Deletes old rows: change events by key from the oldest on, others by their end. */
function* pruneAccounts({
  nowMs,
  limit,
}: Parameters<Accounts["pruneAccounts"]>[0]): Operation<number> {
  let deleted = 0;
  for (const { table, key, end, keptMs } of ENDED) {
    const rows = yield* query(
      `DELETE FROM ${table} WHERE ${key} IN (
         SELECT ${key} FROM ${table} WHERE ${end} < ?
         ORDER BY ${table === "changes" ? key : end} LIMIT ?
       ) RETURNING ${key}`,
      nowMs - keptMs,
      limit,
    );
    deleted += rows.length;
  }
  return deleted;
}
