/** The token that a login issues. */
import type { KeyRing } from "../../auth/keys.ts";
import { NO_ACCESS } from "../../auth/token-rules.ts";
import { type Problem, problem } from "../../errors.ts";
import type { Sources } from "../../server/rpc/engine/caller.ts";
import type { LoginToken, RedeemOutcome } from "../../storage/accounts/logins.ts";
import { toTokenMessage } from "../token/messages.ts";
import { newSecret } from "../token/secret.ts";
import { MAX_ORGANIZATION_TOKENS, MAX_PERSONAL_TOKENS } from "../token/visible.ts";

/** How long the token of a login is valid. */
const LOGIN_TOKEN_LIFETIME_MS = 90 * 24 * 3_600_000;

export interface LoginTokenOptions extends Sources {
  readonly keys: Pick<KeyRing, "digest" | "seal">;
}

/** A new token for a valid code: its value, and the token as stored. */
export function newLoginToken({ keys, now, newId }: LoginTokenOptions): {
  readonly value: string;
  readonly token: LoginToken;
} {
  const tokenId = newId();
  const access = { ...NO_ACCESS, developerOperations: true };
  // A personal token's value is not sealed, so its organization need not be known yet.
  const token = { organizationId: "", tokenId, kind: "personal", access } as const;
  const { value, secret } = newSecret(keys, token);
  const fields = {
    description: "Made by tessera cloud login",
    access,
    allDeployments: false,
    deployments: [],
    expiresAtMs: now() + LOGIN_TOKEN_LIFETIME_MS,
    notBeforeMs: undefined,
    allowedNetworks: [],
  };
  const limits = { limit: MAX_ORGANIZATION_TOKENS, personalLimit: MAX_PERSONAL_TOKENS };
  return { value, token: { tokenId, secret, fields, ...limits } };
}

/** The answer to a redeemed login, which caches must not store. */
export function loginResponse(
  { token, organization, email }: Extract<RedeemOutcome, { outcome: "redeemed" }>,
  value: string,
) {
  return { token: toTokenMessage(token), value, organization, email };
}

/** The same error for every invalid code. */
export function loginInvalid(): Problem {
  return problem(
    "LOGIN_INVALID",
    "this login is not valid: a code works once, soon, and for the program that asked for it; start again",
  );
}
