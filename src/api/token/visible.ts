/** Visibility of tokens: which ones a caller may see and change, and the errors for all others. */
import { checkTokenOwner } from "../../auth/grants.ts";
import { type Problem, problem } from "../../errors.ts";
import type { Member } from "../../server/rpc/engine/caller.ts";
import type { TokenRecord, Tokens } from "../../storage/accounts/tokens.ts";
import { isTaskId } from "../../tasks/id.ts";

/** Tokens of one organization: what a program that makes one each minute reaches in a week. */
export const MAX_ORGANIZATION_TOKENS = 10_000;

/**
 * Personal tokens of one person in one organization, so that no member can use up what all
 * have. Those that have expired count: otherwise many that end at once would.
 */
export const MAX_PERSONAL_TOKENS = 1_000;

interface Wanted {
  readonly member: Member;
  readonly tokenId: string;
}

/**
 * A token that the caller may see: one of the organization, or their own.
 * Errors: TOKEN_NOT_FOUND in every other case.
 */
export async function findToken(
  accounts: Pick<Tokens, "getToken">,
  { member: { organizationId, userId }, tokenId }: Wanted,
): Promise<TokenRecord> {
  const found = isTaskId(tokenId)
    ? await accounts.getToken({ organizationId, tokenId })
    : undefined;
  const isVisible =
    found !== undefined &&
    (found.kind === "organization" || (userId !== undefined && found.userId === userId));
  if (!isVisible) {
    throw tokenNotFound(tokenId);
  }
  return found;
}

/** A token that the caller may change. Errors: TOKEN_NOT_FOUND, ADMIN_REQUIRED. */
export async function findOwnToken(
  accounts: Pick<Tokens, "getToken">,
  wanted: Wanted,
): Promise<TokenRecord> {
  const found = await findToken(accounts, wanted);
  checkTokenOwner(wanted.member.principal, found);
  return found;
}

export function tokenNotFound(tokenId: string): Problem {
  return problem(
    "TOKEN_NOT_FOUND",
    `token ${JSON.stringify(tokenId)} does not exist, or you may not see it`,
  );
}

/** The storage's reason for refusing a token. */
type Refused =
  | { readonly outcome: "not_member" | "monitoring_disabled" | "limit" | "personal_limit" }
  | { readonly outcome: "unknown_deployments"; readonly names: readonly string[] };

/** The error for too many tokens: of the organization, or with `personal_limit` of the person. */
export function tooManyTokens(
  outcome: "limit" | "personal_limit",
  organization = "the organization",
): Problem {
  return problem(
    "LIMIT_REACHED",
    outcome === "limit"
      ? `${organization} has ${MAX_ORGANIZATION_TOKENS} tokens, expired ones included: delete some that are not used any more, and try again`
      : `you have ${MAX_PERSONAL_TOKENS} personal tokens in ${organization}, expired ones included, which is the share of each member: delete personal tokens of yours that are not used any more, and try again`,
  );
}

export function refusal(refused: Refused, organization: string): Problem {
  switch (refused.outcome) {
    case "not_member":
      return problem(
        "ORGANIZATION_NOT_FOUND",
        `organization ${JSON.stringify(organization)} does not exist, or you do not belong to it`,
      );
    case "monitoring_disabled":
      return problem(
        "MONITORING_DISABLED",
        `monitoring tokens are not enabled for ${organization}: ask the operator of the platform for them with tessera org ask-for-monitoring, or in the console`,
      );
    case "limit":
    case "personal_limit":
      return tooManyTokens(refused.outcome, organization);
    case "unknown_deployments": {
      const [first = ""] = refused.names;
      const names = refused.names.slice(0, 10).join(", ");
      return problem(
        "DEPLOYMENT_NOT_FOUND",
        refused.names.length === 1
          ? `${organization} has no deployment ${first}`
          : `${organization} has none of these deployments: ${names}`,
        { violations: [{ field: "deployments", description: `does not exist: ${names}` }] },
      );
    }
  }
}
