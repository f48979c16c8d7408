/** AuthService: setup, sign-in and sign-out of people. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { AuthService, SessionSchema } from "../../../gen/tessera/v1/auth_pb.js";
import {
  faultOfDisplayName,
  faultOfEmail,
  faultOfOrganizationName,
  normalizeEmail,
} from "../../auth/names.ts";
import { digestCode, isCode } from "../../auth/one-time-codes.ts";
import { checkPassword, hashPassword } from "../../auth/passwords.ts";
import type { SessionPrincipal } from "../../auth/principal.ts";
import { problem } from "../../errors.ts";
import { actorOf, callerOf, deed, type Sources } from "../../server/rpc/engine/caller.ts";
import type { Organizations } from "../../storage/accounts/organizations.ts";
import type { ListedSession, People, User } from "../../storage/accounts/people.ts";
import type { Tokens } from "../../storage/accounts/tokens.ts";
import { isTaskId } from "../../tasks/id.ts";
import { timestampFromMs } from "../../time/messages.ts";
import { PageTokens } from "../page.ts";
import { toPrincipalMessage } from "../principal-messages.ts";
import { toTokenMessage } from "../token/messages.ts";
import { refuse, violationsOf } from "../violations.ts";
import { type InvitationOptions, invitationHandlers } from "./invitation.ts";
import { type ProofOptions, provePassword } from "./prove-password.ts";
import { giveSession, personOf, rememberBrowser, startSession, takeSession } from "./session.ts";
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

// The methods of AuthService by which a person confirms their password or changes it.

/**
 * Personal tokens that the answer to a changed password lists; the others are listed page by
 * page.
 */
const MAX_LISTED_TOKENS = 100;

interface PasswordOptions extends ProofOptions {
  readonly accounts: ProofOptions["accounts"] &
    Pick<People, "findUser" | "confirmSession" | "setPassword"> &
    Pick<Tokens, "listPersonalTokens"> &
    Pick<Organizations, "findOrganization">;
}

/** The handlers of passwords. */
function passwordHandlers(
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

/** The methods of AuthService by which people see and end their own sessions. */
interface OwnSessionOptions extends Sources {
  readonly accounts: Pick<People, "closeSession" | "listSessions" | "endSessions">;
  readonly secureCookies: boolean;
}

/** The handlers of a person's sessions. */
function ownSessionHandlers(
  options: OwnSessionOptions,
): Pick<
  ServiceImpl<typeof AuthService>,
  "signOut" | "listSessions" | "endSession" | "endOtherSessions"
> {
  const { accounts, now } = options;
  return {
    async signOut(_req, ctx) {
      const { sessionId } = personOf(ctx);
      await accounts.closeSession({ ...deed(actorOf(callerOf(ctx)), options), sessionId });
      takeSession(ctx, options);
      return {};
    },

    async listSessions(req, ctx) {
      const { userId, sessionId } = personOf(ctx);
      const tokens = new PageTokens({ method: "ListSessions", filter: [userId], isEnd: isTaskId });
      const page = await accounts.listSessions({ ...tokens.query(req), userId, nowMs: now() });
      return {
        sessions: page.items.map((one) => toSessionMessage(one, sessionId)),
        nextPageToken: tokens.after(page.next),
      };
    },

    async endSession({ sessionId }, ctx) {
      const { userId, sessionId: own } = personOf(ctx);
      const by = actorOf(callerOf(ctx));
      const which = { only: sessionId };
      const ended = isTaskId(sessionId)
        ? await accounts.endSessions({ ...deed(by, options), userId, which })
        : 0;
      if (ended === 0) {
        throw problem(
          "SESSION_NOT_FOUND",
          `session ${JSON.stringify(sessionId)} is not yours: it may have ended or expired`,
        );
      }
      if (sessionId === own) {
        takeSession(ctx, options);
      }
      return {};
    },

    async endOtherSessions(_req, ctx) {
      const { userId, sessionId } = personOf(ctx);
      const by = actorOf(callerOf(ctx));
      const which = { allBut: sessionId };
      return {
        endedSessions: await accounts.endSessions({ ...deed(by, options), userId, which }),
      };
    },
  };
}

function toSessionMessage(
  { sessionId, client, address, createdAtMs, usedAtMs, expiresAtMs }: ListedSession,
  current: string,
): MessageInitShape<typeof SessionSchema> {
  return {
    sessionId,
    current: sessionId === current,
    client,
    address,
    createdAt: timestampFromMs(createdAtMs),
    ...(usedAtMs !== undefined && { lastUsedAt: timestampFromMs(usedAtMs) }),
    expiresAt: timestampFromMs(expiresAtMs),
  };
}
