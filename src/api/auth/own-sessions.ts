/** The methods of AuthService by which people see and end their own sessions. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { AuthService, SessionSchema } from "../../../gen/tessera/v1/auth_pb.js";
import { problem } from "../../errors.ts";
import { actorOf, callerOf, deed, type Sources } from "../../server/rpc/engine/caller.ts";
import type { ListedSession, People } from "../../storage/accounts/people.ts";
import { isTaskId } from "../../tasks/id.ts";
import { timestampFromMs } from "../../time/messages.ts";
import { PageTokens } from "../page.ts";
import { personOf, takeSession } from "./session.ts";

export interface OwnSessionOptions extends Sources {
  readonly accounts: Pick<People, "closeSession" | "listSessions" | "endSessions">;
  readonly secureCookies: boolean;
}

/** The handlers of a person's sessions. */
export function ownSessionHandlers(
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
