/** TokenService: API tokens of people and organizations. */
import type { ServiceImpl } from "@connectrpc/connect";
import {
  TokenKind,
  TokenSchema,
  type TokenService,
  type UpdateTokenRequest,
} from "../../../gen/tessera/v1/token_pb.js";
import {
  checkHandsOutSecrets,
  checkNoClimbing,
  checkNoClimbingUpdate,
  checkTokenOwner,
  widens,
} from "../../auth/grants.ts";
import { type KeyRing, sealingContext } from "../../auth/keys.ts";
import { adminRequired, requireRecentSignIn } from "../../auth/permissions.ts";
import { checkTokenFields } from "../../auth/token-rules.ts";
import { problem } from "../../errors.ts";
import {
  callerOf,
  deed,
  type Member,
  memberIn,
  memberOf,
  type Sources,
} from "../../server/rpc/engine/caller.ts";
import type { Organizations } from "../../storage/accounts/organizations.ts";
import type {
  TokenKind as Kind,
  TokenFields,
  TokenRecord,
  Tokens,
} from "../../storage/accounts/tokens.ts";
import { isTaskId } from "../../tasks/id.ts";
import { changedFields, changedMeanwhile } from "../mask.ts";
import { PageTokens } from "../page.ts";
import { milliseconds } from "../task/messages.ts";
import { invalidField, missing } from "../violations.ts";
import { CHANGEABLE, changedTokenFields, fieldsOf, newTokenFields } from "./fields.ts";
import { toTokenMessage } from "./messages.ts";
import { newSecret } from "./secret.ts";
import {
  findOwnToken,
  findToken,
  MAX_ORGANIZATION_TOKENS,
  MAX_PERSONAL_TOKENS,
  refusal,
  tokenNotFound,
} from "./visible.ts";

interface TokenOptions extends Sources {
  readonly accounts: Pick<
    Tokens,
    | "createToken"
    | "getToken"
    | "listTokens"
    | "updateToken"
    | "deleteToken"
    | "rotateToken"
    | "getSealed"
  > &
    Pick<Organizations, "findOrganization" | "recordAuditEvent">;
  readonly keys: Pick<KeyRing, "digest" | "seal" | "unseal">;
  /** The platform's public URL, without a trailing slash. */
  readonly publicUrl: string;
}

/** TokenService over the accounts. */
export function tokenService(options: TokenOptions): Partial<ServiceImpl<typeof TokenService>> {
  const { accounts, keys, publicUrl, now, newId } = options;
  const messageOf = (token: TokenRecord) => toTokenMessage(token, publicUrl);
  return {
    async createToken(req, ctx) {
      const { principal, organizationId, organization, userId, by } = memberOf(ctx);
      const kind: Kind = req.kind === TokenKind.ORGANIZATION ? "organization" : "personal";
      checkTokenOwner(principal, { kind, organizationId, userId });
      const fields = newTokenFields(req, principal);
      checkTokenFields(fields, { kind, nowMs: now() });
      checkNoClimbing(principal, fields);
      checkHandsOutSecrets(principal, { organizationId, ...fields });
      const tokenId = newId();
      const token = { organizationId, tokenId, kind };
      const { value, secret } = newSecret(keys, { ...token, access: fields.access });
      const created = await accounts.createToken({
        ...deed(by, options),
        ...token,
        userId,
        fields,
        secret,
        limit: MAX_ORGANIZATION_TOKENS,
        personalLimit: MAX_PERSONAL_TOKENS,
      });
      if (created.outcome !== "created") {
        throw refusal(created, organization);
      }
      const loginCommand = fields.access.developerOperations
        ? `tessera cloud login --api-token ${value} --endpoint ${publicUrl}`
        : "";
      return { token: messageOf(created.token), value, loginCommand };
    },

    async getToken({ tokenId }, ctx) {
      return messageOf(await findToken(accounts, { member: memberOf(ctx), tokenId }));
    },

    async listTokens(req, ctx) {
      const { organizationId, userId } = memberOf(ctx);
      const kind = KINDS.get(req.kind);
      const filter = [organizationId, userId, kind];
      const tokens = new PageTokens({ method: "ListTokens", filter, isEnd: isTaskId });
      const page = await accounts.listTokens({
        ...tokens.query(req),
        organizationId,
        viewerId: userId,
        ...(kind !== undefined && { kind }),
      });
      return { tokens: page.items.map(messageOf), nextPageToken: tokens.after(page.next) };
    },

    async updateToken(req, ctx) {
      return messageOf(await updateToken(options, { member: memberOf(ctx), req }));
    },

    async deleteToken({ tokenId }, ctx) {
      const member = memberOf(ctx);
      const { organizationId } = await findOwnToken(accounts, { member, tokenId });
      if (!(await accounts.deleteToken({ ...deed(member.by, options), organizationId, tokenId }))) {
        throw tokenNotFound(tokenId);
      }
      return {};
    },

    async rotateToken({ tokenId, grace }, ctx) {
      const member = memberOf(ctx);
      const token = await findOwnToken(accounts, { member, tokenId });
      const deployments = token.deployments.map(({ name }) => name);
      checkNoClimbing(member.principal, { ...token, deployments });
      checkHandsOutSecrets(member.principal, token);
      const { value, secret } = newSecret(keys, token);
      const rotated = await accounts.rotateToken({
        ...deed(member.by, options),
        organizationId: token.organizationId,
        tokenId,
        secret,
        graceMs: milliseconds(grace),
      });
      if (rotated === undefined) {
        throw tokenNotFound(tokenId);
      }
      return { token: messageOf(rotated), value };
    },

    async revealToken({ organization, tokenId }, ctx) {
      const member = memberIn(callerOf(ctx), organization);
      const { principal, organizationId, role, by } = member;
      const { kind, name } = await findToken(accounts, { member, tokenId });
      if (role !== "admin" && kind === "organization") {
        throw adminRequired();
      }
      const ofOrganization = await accounts.findOrganization({ organizationId });
      if (kind === "personal" || ofOrganization?.revealEnabled !== true) {
        throw problem(
          "REVEAL_DISABLED",
          kind === "personal"
            ? "the value of a personal token is not kept: rotate the token to get a new one"
            : `${member.organization} does not keep the values of its tokens: rotate the token to get a new one`,
        );
      }
      if (principal.kind === "session") {
        requireRecentSignIn(principal, now());
      }
      const sealed = await accounts.getSealed({ organizationId, tokenId });
      if (sealed === undefined) {
        throw tokenNotFound(tokenId);
      }
      if (sealed === null) {
        throw problem(
          "REVEAL_DISABLED",
          "the value of this token was not kept: rotate the token to get a new one",
        );
      }
      const value = keys.unseal(sealed, sealingContext(organizationId, tokenId));
      // The audit event comes first: a value must never be revealed without one.
      const event = { action: "token.reveal" as const, subjectId: tokenId, subject: name };
      await accounts.recordAuditEvent({ ...deed(by, options), organizationId, ...event });
      return { value };
    },
  };
}

const KINDS = new Map<TokenKind, Kind>([
  [TokenKind.PERSONAL, "personal"],
  [TokenKind.ORGANIZATION, "organization"],
]);

// UpdateToken: an optimistic read-check-write loop.

/** Attempts to update a token that somebody else changes in between. */
const MAX_UPDATE_ATTEMPTS = 5;

interface TokenUpdateCall {
  readonly member: Member;
  readonly req: UpdateTokenRequest;
}

/**
 * Changes a token. The rules apply to the token as a whole, so it is read,
 * checked with the change, and written only if its version is still the one
 * that was read. Errors: those of UpdateToken.
 */
async function updateToken(
  options: Sources & { readonly accounts: Pick<Tokens, "getToken" | "updateToken"> },
  { member, req: { token: message = missing(), updateMask: mask } }: TokenUpdateCall,
): Promise<TokenRecord> {
  const { accounts, now } = options;
  const { principal, organizationId, organization, by } = member;
  const { tokenId, version: wanted } = message;
  for (let attempt = 1; ; attempt++) {
    const token = await findOwnToken(accounts, { member, tokenId });
    const fields = changedTokenFields(
      message,
      changedFields(TokenSchema, { message, mask }, CHANGEABLE),
    );
    if (wanted !== 0 && wanted !== token.version) {
      throw changedMeanwhile(`token ${tokenId}`);
    }
    const before = fieldsOf(token);
    const notBeforeMs = fields.notBeforeMs === undefined ? before.notBeforeMs : fields.notBeforeMs;
    const after = { ...before, ...fields, notBeforeMs: notBeforeMs ?? undefined };
    if (before.access.monitoring !== after.access.monitoring) {
      throw invalidField(
        "access",
        "of monitoring cannot be added or taken away: make another token",
      );
    }
    const changed = new Set(Object.keys(fields) as (keyof TokenFields)[]);
    checkTokenFields(after, { kind: token.kind, nowMs: now(), changed });
    checkNoClimbingUpdate(principal, { before, after });
    if (widens({ before, after })) {
      checkHandsOutSecrets(principal, { organizationId, access: after.access });
    }
    const { version } = token;
    const key = { organizationId, tokenId };
    const updated = await accounts.updateToken({ ...deed(by, options), ...key, fields, version });
    switch (updated.outcome) {
      case "updated":
        return updated.token;
      case "not_found":
        throw tokenNotFound(tokenId);
      case "version_conflict":
        if (wanted !== 0 || attempt === MAX_UPDATE_ATTEMPTS) {
          throw changedMeanwhile(`token ${tokenId}`);
        }
        break;
      case "monitoring_disabled":
        throw refusal({ outcome: "monitoring_disabled" }, organization);
      case "unknown_deployments":
        throw refusal(updated, organization);
    }
  }
}
