/** Password authentication with rate limits by address and by account. */
import type { HandlerContext } from "@connectrpc/connect";
import type { FastifyBaseLogger } from "fastify";
import { readDeviceCookie } from "../../auth/devices.ts";
import type { FailureLimiter } from "../../auth/failures.ts";
import type { KeyRing } from "../../auth/keys.ts";
import { verifyPassword } from "../../auth/passwords.ts";
import { isSecure } from "../../auth/principal.ts";
import type { SignInThrottle } from "../../auth/sign-in-throttle.ts";
import { callerOf, type Sources } from "../../server/rpc/engine/caller.ts";
import type { People, User } from "../../storage/accounts/people.ts";
import { recordFailure, signInFailed } from "./sign-in-failure.ts";

export interface ProofOptions extends Sources {
  readonly accounts: Pick<People, "recordFailedSignIn">;
  /** Limits failed sign-ins, by address. */
  readonly limiter: FailureLimiter;
  /** Limits wrong passwords, by account. */
  readonly throttle: SignInThrottle;
  readonly keys: Pick<KeyRing, "seal" | "unseal">;
  /** True to set cookies for https only, whatever protocol a request has, because the public URL is https. */
  readonly secureCookies: boolean;
  readonly log: FastifyBaseLogger;
}

interface Proof {
  /** The account, normalized. */
  readonly email: string;
  readonly password: string;
  readonly find: () => Promise<User | undefined>;
}

/**
 * Returns the person whose password it is. Errors: SIGN_IN_FAILED, which is
 * recorded and is the same whatever was wrong; RATE_LIMITED; SERVER_BUSY.
 */
export async function provePassword(
  options: ProofOptions,
  { email, password, find }: Proof,
  ctx: HandlerContext,
): Promise<User> {
  const { limiter, throttle } = options;
  const { address } = callerOf(ctx);
  const device = await deviceOf(options, { email, find }, ctx);
  const from = { account: email, address, device };
  const isFailure = (found: User | undefined) => found === undefined;
  const attempt = async () => {
    const user = await find();
    const ahead = throttle.isKnown(from);
    return (await verifyPassword(user?.passwordHash, password, { ahead })) ? user : undefined;
  };
  const user = await limiter.attempt(
    address,
    () => throttle.attempt(from, attempt, isFailure),
    isFailure,
  );
  if (user === undefined) {
    recordFailure(options, { email, address });
    throw signInFailed();
  }
  throttle.succeed(from);
  return user;
}

/** The device that shows that the person has signed in before: their session, or the cookie of their browser. */
async function deviceOf(
  { keys, secureCookies, now }: ProofOptions,
  { email: account, find }: Pick<Proof, "email" | "find">,
  ctx: HandlerContext,
): Promise<string | undefined> {
  const { principal } = callerOf(ctx);
  if (principal.kind === "session" && principal.email === account) {
    return `session ${principal.sessionId}`;
  }
  const secure = secureCookies || isSecure(ctx.values);
  const cookie = ctx.requestHeader.get("cookie");
  const device = { keys, account, secure, nowMs: now() };
  return readDeviceCookie(cookie, device, async () => (await find())?.passwordHash);
}
