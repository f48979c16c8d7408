import type { ServiceImpl } from "@connectrpc/connect";
import type { LoginService } from "../../../gen/tessera/v1/login_pb.js";
import type { FailureLimiter } from "../../auth/failures.ts";
import { createCode, digestCode, isCode } from "../../auth/one-time-codes.ts";
import { actorOf, callerOf, deed, memberIn } from "../../server/rpc/engine/caller.ts";
import type { Logins, RedeemOutcome } from "../../storage/accounts/logins.ts";
import { tooManyTokens } from "../token/visible.ts";
import { type DeviceLoginOptions, deviceLoginHandlers } from "./device.ts";
import { challengeOf, checkAuthorization } from "./request.ts";
import { type LoginTokenOptions, loginInvalid, loginResponse, newLoginToken } from "./token.ts";

type LoginServiceOptions = BrowserLoginOptions & DeviceLoginOptions;

/** LoginService over the accounts. */
export function loginService(
  options: LoginServiceOptions,
): Partial<ServiceImpl<typeof LoginService>> {
  return { ...browserLoginHandlers(options), ...deviceLoginHandlers(options) };
}

// Login through a browser on the program's own machine: OAuth for native apps (RFC 8252) with PKCE.

/** How long the code of a browser login is valid: the browser carries it to the program at once. */
const LOGIN_CODE_LIFETIME_MS = 60_000;

interface BrowserLoginOptions extends LoginTokenOptions {
  readonly accounts: Pick<Logins, "createLoginCode" | "redeemLoginCode">;
  /** Limits wrong codes, by address. */
  readonly limiter: FailureLimiter;
}

/** The handlers of browser logins. */
function browserLoginHandlers(
  options: BrowserLoginOptions,
): Pick<ServiceImpl<typeof LoginService>, "authorizeLogin" | "redeemLogin"> {
  const { accounts, limiter, now } = options;
  return {
    async authorizeLogin(req, ctx) {
      const caller = callerOf(ctx);
      checkAuthorization(req);
      const { organizationId, userId, by } = memberIn(caller, req.organization);
      const code = createCode();
      await accounts.createLoginCode({
        ...deed(by, options),
        digest: digestCode(code),
        userId: userId ?? "",
        organizationId,
        codeChallenge: req.codeChallenge,
        redirectUri: req.redirectUri,
        hostName: req.hostName,
        expiresAtMs: now() + LOGIN_CODE_LIFETIME_MS,
      });
      const redirectUrl = new URL(req.redirectUri);
      redirectUrl.searchParams.set("code", code);
      redirectUrl.searchParams.set("state", req.state);
      return { redirectUrl: redirectUrl.href };
    },

    async redeemLogin({ code, codeVerifier, redirectUri }, ctx) {
      const { value, token } = newLoginToken(options);
      const codeChallenge = challengeOf(codeVerifier);
      const attempt = async (): Promise<RedeemOutcome> =>
        isCode(code)
          ? accounts.redeemLoginCode({
              ...deed(actorOf(callerOf(ctx)), options),
              digest: digestCode(code),
              codeChallenge,
              redirectUri,
              token,
            })
          : { outcome: "invalid" };
      const { address } = callerOf(ctx);
      const redeemed = await limiter.attempt(address, attempt, (it) => it.outcome === "invalid");
      if (redeemed.outcome !== "redeemed") {
        const { outcome } = redeemed;
        throw outcome === "invalid" ? loginInvalid() : tooManyTokens(outcome);
      }
      return loginResponse(redeemed, value);
    },
  };
}
