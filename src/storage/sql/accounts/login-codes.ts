/** Logins by browser redirect: creates and redeems their codes. */
import type { Accounts } from "../../accounts/accounts.ts";
import type { Deed } from "../../accounts/deed.ts";
import type { LoginToken, RedeemOutcome } from "../../accounts/logins.ts";
import { type Operation, query } from "../operation.ts";
import { isCredentialThere } from "./acting-credential.ts";
import { record } from "./audit.ts";
import { lockOrganization } from "./locks.ts";
import { findMember } from "./members.ts";
import { addToken } from "./tokens.ts";

export function* createLoginCode(
  parameters: Parameters<Accounts["createLoginCode"]>[0],
): Operation<void> {
  const { organizationId, userId, hostName } = parameters;
  yield* lockOrganization(organizationId);
  if (!(yield* isCredentialThere(parameters, organizationId))) {
    return;
  }
  yield* query(
    `INSERT INTO login_codes (digest, organization_id, user_id, code_challenge, redirect_uri,
       host_name, expires_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?)`,
    parameters.digest,
    organizationId,
    userId,
    parameters.codeChallenge,
    parameters.redirectUri,
    hostName,
    parameters.expiresAtMs,
  );
  yield* record(parameters, organizationId, {
    action: "login.authorize",
    subjectId: userId,
    subject: parameters.by.name,
    details: { host_name: hostName },
  });
}

interface CodeRow {
  readonly user_id: string;
  readonly code_challenge: string;
  readonly redirect_uri: string;
  readonly host_name: string;
  readonly expires_at_ms: number;
}

/**
 * Redeems a code: the transaction that deletes the code has redeemed it. It
 * takes the organization's lock first, in the usual order.
 */
export function* redeemLoginCode(
  parameters: Parameters<Accounts["redeemLoginCode"]>[0],
): Operation<RedeemOutcome> {
  const { digest, codeChallenge, redirectUri, nowMs } = parameters;
  const [found] = yield* query<{ organization_id: string }>(
    "SELECT organization_id FROM login_codes WHERE digest = ?",
    digest,
  );
  if (found === undefined) {
    return { outcome: "invalid" };
  }
  yield* lockOrganization(found.organization_id);
  const [code] = yield* query<CodeRow>(
    `DELETE FROM login_codes WHERE digest = ?
     RETURNING user_id, code_challenge, redirect_uri, host_name, expires_at_ms`,
    digest,
  );
  if (
    code === undefined ||
    code.expires_at_ms <= nowMs ||
    code.code_challenge !== codeChallenge ||
    code.redirect_uri !== redirectUri
  ) {
    return { outcome: "invalid" };
  }
  return yield* endLogin(parameters, {
    organizationId: found.organization_id,
    userId: code.user_id,
    hostName: code.host_name,
    way: "browser",
  });
}

/** The host name of a login that did not send one. */
const NO_HOST_NAME = "command line";

/** Creates the token of a login, if its person is still a member. */
export function* endLogin(
  { token, ...deed }: Deed & { readonly token: LoginToken },
  login: {
    readonly organizationId: string;
    readonly userId: string;
    readonly hostName: string;
    readonly way: "browser" | "device";
  },
): Operation<RedeemOutcome> {
  const { organizationId, userId, hostName, way } = login;
  const organization = yield* lockOrganization(organizationId);
  const member = yield* findMember(organizationId, userId);
  if (organization === undefined || member === undefined) {
    return { outcome: "invalid" };
  }
  const created = yield* addToken(organization, {
    ...deed,
    // A program redeems the code, but the token belongs to its person.
    by: { ...deed.by, name: member.email, id: userId },
    tokenId: token.tokenId,
    kind: "personal",
    userId,
    fields: { ...token.fields, name: hostName || NO_HOST_NAME },
    secret: token.secret,
    limit: token.limit ?? Number.POSITIVE_INFINITY,
    personalLimit: token.personalLimit ?? Number.POSITIVE_INFINITY,
    origin: `${way} login`,
  });
  switch (created.outcome) {
    case "created":
      return {
        outcome: "redeemed",
        token: created.token,
        organization: organization.name,
        email: member.email,
      };
    case "limit":
    case "personal_limit":
      return { outcome: created.outcome };
    default:
      return { outcome: "invalid" };
  }
}
