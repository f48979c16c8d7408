/** AuthService: setup, sign-in and sign-out of people. */
import type { ServiceImpl } from "@connectrpc/connect";
import type { AuthService } from "../../../gen/tessera/v1/auth_pb.js";
import {
  faultOfDisplayName,
  faultOfEmail,
  faultOfOrganizationName,
  normalizeEmail,
} from "../../auth/names.ts";
import { digestCode, isCode } from "../../auth/one-time-codes.ts";
import { checkPassword, hashPassword } from "../../auth/passwords.ts";
import { problem } from "../../errors.ts";
import { actorOf, callerOf, deed, type Sources } from "../../server/rpc/engine/caller.ts";
import type { Organizations } from "../../storage/accounts/organizations.ts";
import type { People } from "../../storage/accounts/people.ts";
import { toPrincipalMessage } from "../principal-messages.ts";
import { refuse, violationsOf } from "../violations.ts";
import { type InvitationOptions, invitationHandlers } from "./invitation.ts";
import { type OwnSessionOptions, ownSessionHandlers } from "./own-sessions.ts";
import { type PasswordOptions, passwordHandlers } from "./password.ts";
import { provePassword } from "./prove-password.ts";
import { giveSession, personOf, startSession } from "./session.ts";
import { signInFailed } from "./sign-in-failure.ts";

interface AuthServiceOptions
  extends DisplayNameOptions,
    InvitationOptions,
    OwnSessionOptions,
    PasswordOptions {
  readonly accounts: DisplayNameOptions["accounts"] &
    InvitationOptions["accounts"] &
    OwnSessionOptions["accounts"] &
    PasswordOptions["accounts"] &
    Pick<People, "needsSetup" | "setUp">;
}

/** AuthService over the accounts. */
export function authService(options: AuthServiceOptions): Partial<ServiceImpl<typeof AuthService>> {
  const { accounts, limiter, newId } = options;
  return {
    ...passwordHandlers(options),
    ...invitationHandlers(options),
    ...ownSessionHandlers(options),
    ...displayNameHandlers(options),

    async setUp({ setupCode, organization, displayName, password, ...req }, ctx) {
      const { address } = callerOf(ctx);
      const email = normalizeEmail(req.email);
      refuse(
        violationsOf({
          organization: faultOfOrganizationName(organization),
          email: faultOfEmail(email),
          display_name: faultOfDisplayName(displayName),
        }),
      );
      checkPassword(password);
      const { value, session } = startSession(ctx, options);
      let passwordHash: string | undefined;
      const attempt = async () => {
        // Once the platform is set up, it does not spend time on hashing strangers' passwords.
        if (!isCode(setupCode) || !(await accounts.needsSetup())) {
          return "code_invalid";
        }
        const userId = newId();
        passwordHash = await hashPassword(password);
        const { outcome } = await accounts.setUp({
          ...deed({ name: email, id: userId, address }, options),
          setupDigest: digestCode(setupCode),
          organizationId: newId(),
          organization,
          userId,
          email,
          displayName,
          passwordHash,
          session,
        });
        return outcome;
      };
      if ((await limiter.attempt(address, attempt, (outcome) => outcome !== "done")) !== "done") {
        throw problem(
          "SETUP_INVALID",
          "this setup link is not valid: it works once, on a platform that is not set up yet; the server prints a new one at its next start",
        );
      }
      return giveSession(ctx, { ...options, passwordHash, value, session });
    },

    async signIn({ password, ...req }, ctx) {
      const { address } = callerOf(ctx);
      const email = normalizeEmail(req.email);
      const find = async () => (faultOfEmail(email) ? undefined : accounts.findUser({ email }));
      const user = await provePassword(options, { email, password, find }, ctx);
      const { value, session } = startSession(ctx, options);
      const { email: name, userId, passwordHash } = user;
      const by = { name, id: userId, address };
      const opened = await accounts.openSession({
        ...deed(by, options),
        userId,
        session,
        passwordHash,
      });
      if (!opened) {
        // The password was changed while it was being verified.
        throw signInFailed();
      }
      return giveSession(ctx, { ...options, passwordHash, value, session });
    },

    getCurrentPrincipal(_req, ctx) {
      return toPrincipalMessage(callerOf(ctx).principal, accounts);
    },
  };
}

/** The method of AuthService by which a person changes their name. */
interface DisplayNameOptions extends Sources {
  readonly accounts: Pick<People, "changeDisplayName"> & Pick<Organizations, "findOrganization">;
}

/** The handler of people's names. */
function displayNameHandlers(
  options: DisplayNameOptions,
): Pick<ServiceImpl<typeof AuthService>, "changeDisplayName"> {
  const { accounts } = options;
  return {
    async changeDisplayName(req, ctx) {
      const person = personOf(ctx);
      refuse(violationsOf({ display_name: faultOfDisplayName(req.displayName) }));
      const displayName = req.displayName.trim();
      const { userId } = person;
      const by = actorOf(callerOf(ctx));
      await accounts.changeDisplayName({ ...deed(by, options), userId, displayName });
      return toPrincipalMessage({ ...person, displayName }, accounts);
    },
  };
}
