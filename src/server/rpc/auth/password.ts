/** The methods of AuthService by which a person proves to be there, and changes the password. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { AuthService } from "../../../../gen/tessera/v1/auth_pb.js";
import { checkPassword, hashPassword } from "../../../auth/passwords.ts";
import type { SessionPrincipal } from "../../../auth/principal.ts";
import type { Organizations } from "../../../storage/accounts/organizations.ts";
import type { People } from "../../../storage/accounts/people.ts";
import type { Tokens } from "../../../storage/accounts/tokens.ts";
import { actorOf, callerOf, deed } from "../engine/caller.ts";
import { toPrincipalMessage } from "../principal-messages.ts";
import { toTokenMessage } from "../token/messages.ts";
import { type ProofOptions, provePassword } from "./prove-password.ts";
import { rememberBrowser } from "./session.ts";

/** Tokens in one answer: who has more, lists them. */
const MAX_LISTED = 100;

export interface PasswordOptions extends ProofOptions {
  readonly accounts: ProofOptions["accounts"] &
    Pick<People, "findUser" | "confirmSession" | "setPassword"> &
    Pick<Tokens, "listPersonalTokens"> &
    Pick<Organizations, "findOrganization">;
}

export function passwordHandlers(
  options: PasswordOptions,
): Pick<ServiceImpl<typeof AuthService>, "confirmPassword" | "changePassword"> {
  const { accounts, now } = options;

  /** The session's person, who knows the password. Errors: those of `provePassword`. */
  const confirm = async (password: string, ctx: HandlerContext): Promise<SessionPrincipal> => {
    const { principal } = callerOf(ctx);
    if (principal.kind !== "session") {
      throw new Error("the method's access does not ask for a session");
    }
    const { userId, email } = principal;
    const find = () => accounts.findUser({ userId });
    await provePassword(options, { email, password, find }, ctx);
    return principal;
  };

  return {
    async confirmPassword({ password }, ctx) {
      const principal = await confirm(password, ctx);
      const { sessionId } = principal;
      await accounts.confirmSession({ sessionId, nowMs: now() });
      return toPrincipalMessage(principal, accounts);
    },

    async changePassword({ currentPassword, newPassword, revokeTokens }, ctx) {
      const caller = callerOf(ctx);
      checkPassword(newPassword, "new_password");
      const { userId, email, sessionId } = await confirm(currentPassword, ctx);
      // Who has just shown the old one is no stranger.
      const passwordHash = await hashPassword(newPassword, { ahead: true });
      const changed = await accounts.setPassword({
        ...deed(actorOf(caller), options),
        userId,
        passwordHash,
        exceptSessionId: sessionId,
        revokeTokens,
      });
      await rememberBrowser(ctx, email, { ...options, passwordHash });
      const kept = await accounts.listPersonalTokens({ userId, nowMs: now(), limit: MAX_LISTED });
      return {
        ...changed,
        keptTokens: kept.tokens.map(toTokenMessage),
        keptTokenCount: kept.count,
      };
    },
  };
}
