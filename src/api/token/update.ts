/** UpdateToken: an optimistic read-check-write loop. */
import { TokenSchema, type UpdateTokenRequest } from "../../../gen/tessera/v1/token_pb.js";
import { checkHandsOutSecrets, checkNoClimbingUpdate, widens } from "../../auth/grants.ts";
import { checkTokenFields } from "../../auth/token-rules.ts";
import { deed, type Member, type Sources } from "../../server/rpc/engine/caller.ts";
import type { TokenFields, TokenRecord, Tokens } from "../../storage/accounts/tokens.ts";
import { changedFields, changedMeanwhile } from "../mask.ts";
import { invalidField, missing } from "../violations.ts";
import { CHANGEABLE, changedTokenFields, fieldsOf } from "./fields.ts";
import { findOwnToken, refusal, tokenNotFound } from "./visible.ts";

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
export async function updateToken(
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
