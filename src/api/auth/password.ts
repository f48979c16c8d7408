/** The methods of AuthService by which a person confirms their password or changes it. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { AuthService } from "../../../gen/tessera/v1/auth_pb.js";
import { checkPassword, hashPassword } from "../../auth/passwords.ts";
import type { SessionPrincipal } from "../../auth/principal.ts";
import { actorOf, callerOf, deed } from "../../server/rpc/engine/caller.ts";
import type { Organizations } from "../../storage/accounts/organizations.ts";
import type { People, User } from "../../storage/accounts/people.ts";
import type { Tokens } from "../../storage/accounts/tokens.ts";
import { toPrincipalMessage } from "../principal-messages.ts";
import { toTokenMessage } from "../token/messages.ts";
import { type ProofOptions, provePassword } from "./prove-password.ts";
import { personOf, rememberBrowser } from "./session.ts";
import { signInFailed } from "./sign-in-failure.ts";

/**
 * Personal tokens that the answer to a changed password lists; the others are listed page by
 * page.
 */
const MAX_LISTED_TOKENS = 100;

export interface PasswordOptions extends ProofOptions {
  readonly accounts: ProofOptions["accounts"] &
    Pick<People, "findUser" | "confirmSession" | "setPassword"> &
    Pick<Tokens, "listPersonalTokens"> &
    Pick<Organizations, "findOrganization">;
}

/** The handlers of passwords. */
export function passwordHandlers(
  options: PasswordOptions,
): Pick<ServiceImpl<typeof AuthService>, "confirmPassword" | "changePassword"> {
  const { accounts, now } = options;

  /** Verifies the password of the session's person. Errors: those of `provePassword`. */
  const confirm = async (
    password: string,
    ctx: HandlerContext,
  ): Promise<{ readonly principal: SessionPrincipal; readonly user: User }> => {
    const principal = personOf(ctx);
    const { userId, email } = principal;
    const find = () => accounts.findUser({ userId });
    const user = await provePassword(options, { email, password, find }, ctx);
    return { principal, user };
  };

  return {
    async confirmPassword({ password }, ctx) {
      const { principal } = await confirm(password, ctx);
      const { sessionId } = principal;
      await accounts.confirmSession({ sessionId, nowMs: now() });
      return toPrincipalMessage(principal, accounts);
    },

    async changePassword({ currentPassword, newPassword, revokeTokens }, ctx) {
      const caller = callerOf(ctx);
      checkPassword(newPassword, "new_password");
      const { principal, user } = await confirm(currentPassword, ctx);
      const { userId, email, sessionId } = principal;
      // `ahead`: a person who has just proved the old password goes first.
      const passwordHash = await hashPassword(newPassword, { ahead: true });
      const changed = await accounts.setPassword({
        ...deed(actorOf(caller), options),
        userId,
        passwordHash,
        currentHash: user.passwordHash,
        exceptSessionId: sessionId,
        revokeTokens,
      });
      if (changed === undefined) {
        // Somebody else changed it while the new one was hashed.
        throw signInFailed();
      }
      await rememberBrowser(ctx, email, { ...options, passwordHash });
      const kept = await accounts.listPersonalTokens({
        userId,
        nowMs: now(),
        limit: MAX_LISTED_TOKENS,
      });
      return {
        ...changed,
        keptTokens: kept.tokens.map((token) => toTokenMessage(token)),
        keptTokenCount: kept.count,
      };
    },
  };
}
