/** The device authorization grant (RFC 8628): login by a code that a person types into any browser. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { LoginService } from "../../../gen/tessera/v1/login_pb.js";
import type { FailureLimiter } from "../../auth/failures.ts";
import type { KeyRing } from "../../auth/keys.ts";
import {
  createCode,
  createUserCode,
  digestCode,
  isCode,
  normalizeUserCode,
} from "../../auth/one-time-codes.ts";
import { type Problem, problem } from "../../errors.ts";
import { actorOf, callerOf, deed, memberIn } from "../../server/rpc/engine/caller.ts";
import type { Logins } from "../../storage/accounts/logins.ts";
import { durationFromMs, timestampFromMs } from "../../time/messages.ts";
import { tooManyTokens } from "../token/visible.ts";
import { refuse, violationsOf } from "../violations.ts";
import { faultOfHostName } from "./request.ts";
import { type LoginTokenOptions, loginInvalid, loginResponse, newLoginToken } from "./token.ts";

/**
 * How long the code of a device login is valid. RFC 8628 leaves the times to the server; these
 * are those of most.
 */
const DEVICE_CODE_LIFETIME_MS = 10 * 60_000;
/** Interval at which a program may poll for a device login. */
const DEVICE_POLL_INTERVAL_MS = 5_000;

/** Device logins that wait, from anywhere; each is a row for ten minutes. */
const MAX_WAITING_DEVICE_LOGINS = 10_000;

type DeviceMethods =
  | "startDeviceLogin"
  | "getDeviceLogin"
  | "answerDeviceLogin"
  | "redeemDeviceLogin";

export interface DeviceLoginOptions extends LoginTokenOptions {
  readonly accounts: Pick<
    Logins,
    "createDeviceLogin" | "findDeviceLogin" | "answerDeviceLogin" | "redeemDeviceLogin"
  >;
  readonly keys: Pick<KeyRing, "digest" | "digestUserCode" | "seal">;
  /** Limits wrong codes, by address. */
  readonly limiter: FailureLimiter;
  /** Limits started device logins, by address: anyone may start one. */
  readonly startLimiter: FailureLimiter;
  /** The platform's public URL, without a trailing slash. */
  readonly publicUrl: string;
}

/** The handlers of device logins. */
export function deviceLoginHandlers(
  options: DeviceLoginOptions,
): Pick<ServiceImpl<typeof LoginService>, DeviceMethods> {
  const { accounts, keys, limiter, startLimiter, publicUrl, now } = options;

  /** The pending login of a code that a person typed. Errors: LOGIN_NOT_FOUND, RATE_LIMITED. */
  const find = async (typed: string, ctx: HandlerContext) => {
    const userCode = normalizeUserCode(typed);
    const userCodeDigest = userCode === undefined ? "" : keys.digestUserCode(userCode);
    const attempt = async () =>
      userCode === undefined
        ? undefined
        : accounts.findDeviceLogin({ userCodeDigest, nowMs: now() });
    const { address } = callerOf(ctx);
    const login = await limiter.attempt(address, attempt, (found) => found === undefined);
    if (login === undefined || userCode === undefined) {
      throw loginNotFound();
    }
    return { login, userCode, userCodeDigest };
  };

  return {
    async startDeviceLogin({ hostName }, ctx) {
      const { address } = callerOf(ctx);
      refuse(violationsOf({ host_name: faultOfHostName(hostName) }));
      startLimiter.check(address);
      startLimiter.fail(address);
      const deviceCode = createCode();
      const userCode = createUserCode();
      const nowMs = now();
      const expiresAtMs = nowMs + DEVICE_CODE_LIFETIME_MS;
      const created = await accounts.createDeviceLogin({
        deviceDigest: digestCode(deviceCode),
        userCodeDigest: keys.digestUserCode(userCode),
        hostName,
        address,
        nowMs,
        expiresAtMs,
        intervalMs: DEVICE_POLL_INTERVAL_MS,
        limit: MAX_WAITING_DEVICE_LOGINS,
      });
      if (!created) {
        throw problem("RATE_LIMITED", "too many logins wait for an answer: try again later", {
          retryAfterMs: 60_000,
        });
      }
      const verificationUrl = `${publicUrl}/device`;
      return {
        deviceCode,
        userCode,
        verificationUrl,
        verificationUrlComplete: `${verificationUrl}?user_code=${userCode}`,
        expiresAt: timestampFromMs(expiresAtMs),
        interval: durationFromMs(DEVICE_POLL_INTERVAL_MS),
      };
    },

    async getDeviceLogin(req, ctx) {
      const { login, userCode } = await find(req.userCode, ctx);
      const { hostName, address, createdAtMs, expiresAtMs } = login;
      return {
        userCode,
        hostName,
        address,
        createdAt: timestampFromMs(createdAtMs),
        expiresAt: timestampFromMs(expiresAtMs),
      };
    },

    async answerDeviceLogin({ userCode: typed, approve, organization }, ctx) {
      const { userCodeDigest } = await find(typed, ctx);
      const { organizationId, userId, by } = memberIn(callerOf(ctx), organization);
      const answered = await accounts.answerDeviceLogin({
        ...deed(by, options),
        userCodeDigest,
        approve,
        userId: userId ?? "",
        organizationId,
      });
      if (!answered) {
        throw loginNotFound();
      }
      return {};
    },

    async redeemDeviceLogin({ deviceCode }, ctx) {
      const { value, token } = newLoginToken(options);
      const attempt = async (): ReturnType<Logins["redeemDeviceLogin"]> =>
        isCode(deviceCode)
          ? accounts.redeemDeviceLogin({
              ...deed(actorOf(callerOf(ctx)), options),
              deviceDigest: digestCode(deviceCode),
              token,
            })
          : { outcome: "invalid" };
      const { address } = callerOf(ctx);
      const redeemed = await limiter.attempt(address, attempt, (it) => it.outcome === "invalid");
      switch (redeemed.outcome) {
        case "redeemed":
          return loginResponse(redeemed, value);
        case "pending":
          throw problem("LOGIN_PENDING", "nobody has answered yet: ask again after the interval");
        case "slow_down":
          throw problem(
            "LOGIN_SLOW_DOWN",
            "asked too soon: wait 5 seconds longer between two calls from now on",
            { retryAfterMs: DEVICE_POLL_INTERVAL_MS },
          );
        case "denied":
          throw problem("LOGIN_DENIED", "the person who was asked said no");
        case "invalid":
          throw loginInvalid();
        case "limit":
        case "personal_limit":
          throw tooManyTokens(redeemed.outcome);
      }
    },
  };
}

function loginNotFound(): Problem {
  return problem(
    "LOGIN_NOT_FOUND",
    "no login waits under this code: check it, or start again; codes end after 10 minutes",
  );
}
