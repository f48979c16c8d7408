import type { Accounts } from "./accounts.ts";
import type { OperationsOf } from "./operation.ts";
import { listAuditEvents, recordAuditEvent } from "./operations/audit.ts";
import { listChanges } from "./operations/changes.ts";
import { findCredential, recordUses } from "./operations/credential.ts";
import {
  createDeployment,
  deleteDeployment,
  findDeployment,
  listDeployments,
  updateDeployment,
} from "./operations/deployments.ts";
import {
  answerDeviceLogin,
  createDeviceLogin,
  findDeviceLogin,
  redeemDeviceLogin,
} from "./operations/device-logins.ts";
import {
  acceptInvitation,
  deleteInvitation,
  findInvitation,
  invite,
  listInvitations,
} from "./operations/invitations.ts";
import { createLoginCode, redeemLoginCode } from "./operations/login-codes.ts";
import { changeRole, listMembers, removeMember } from "./operations/members.ts";
import {
  createOrganization,
  findOrganization,
  listOrganizations,
  updateOrganization,
} from "./operations/organizations.ts";
import { pruneAccounts } from "./operations/prune.ts";
import {
  announceKeys,
  getSealed,
  listSealed,
  replaceDigest,
  replaceSealed,
  rotateToken,
} from "./operations/secrets.ts";
import { closeSession, confirmSession, findSession, openSession } from "./operations/sessions.ts";
import { setPassword } from "./operations/set-password.ts";
import { needsSetup, putSetupCode, setUp } from "./operations/setup.ts";
import { getToken } from "./operations/token-rows.ts";
import {
  createToken,
  deleteToken,
  listPersonalTokens,
  listTokens,
  updateToken,
} from "./operations/tokens.ts";
import { findIdentity, findUser, linkIdentity, recordFailedSignIn } from "./operations/users.ts";

/** Operations of one statement that only reads: they need no transaction around them. */
export const READS = {
  needsSetup,
  findUser,
  findIdentity,
  findSession,
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
  listSealed,
  findDeviceLogin,
  listChanges,
} as const satisfies Partial<OperationsOf<Accounts>>;

/** Every operation of the port. */
export const ACCOUNT_OPERATIONS: OperationsOf<Accounts> = {
  ...READS,
  putSetupCode,
  setUp,
  linkIdentity,
  openSession,
  confirmSession,
  closeSession,
  setPassword,
  recordFailedSignIn,
  createOrganization,
  updateOrganization,
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
