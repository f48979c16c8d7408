/** The methods of AuthService by which a person proves to be there, and changes the password. */
import type { ServiceImpl } from "@connectrpc/connect";
import type { AuthService } from "../../gen/tessera/v1/auth_pb.js";
import { checkPassword, hashPassword, verifyPassword } from "../auth/passwords.ts";
import type { SessionPrincipal } from "../auth/principal.ts";
import type { AuthOptions } from "./auth.ts";
import { actorOf, type Caller, callerOf, deed } from "./caller.ts";
import { toPrincipalMessage } from "./principal-messages.ts";
import { recordFailure, signInFailed } from "./sign-in-failure.ts";

export function passwordHandlers(
  options: AuthOptions,
): Pick<ServiceImpl<typeof AuthService>, "confirmPassword" | "changePassword"> {
  const { accounts, limiter, now } = options;

  /** The session's person, who knows the password. Errors: SIGN_IN_FAILED, RATE_LIMITED. */
  const confirm = async (
    { principal, address }: Caller,
    password: string,
  ): Promise<SessionPrincipal> => {
    if (principal.kind !== "session") {
      throw new Error("the method's access does not ask for a session");
    }
    const { userId, email } = principal;
    const attempt = async () => {
      const user = await accounts.findUser({ userId });
      return verifyPassword(user?.passwordHash, password);
    };
    if (!(await limiter.attempt(address, attempt, (isRight) => !isRight))) {
      recordFailure(options, { email, address });
      throw signInFailed();
    }
    return principal;
  };

  return {
    async confirmPassword({ password }, ctx) {
      const principal = await confirm(callerOf(ctx), password);
      const { sessionId } = principal;
      await accounts.confirmSession({ sessionId, nowMs: now() });
      return toPrincipalMessage(principal, accounts);
    },

    async changePassword({ currentPassword, newPassword }, ctx) {
      const caller = callerOf(ctx);
      checkPassword(newPassword, "new_password");
      const { userId, sessionId } = await confirm(caller, currentPassword);
      await accounts.setPassword({
        ...deed(actorOf(caller), options),
        userId,
        passwordHash: await hashPassword(newPassword),
        exceptSessionId: sessionId,
      });
      return {};
    },
  };
}
