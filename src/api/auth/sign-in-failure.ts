/** Failed sign-ins: their record and their error. */
import type { FastifyBaseLogger } from "fastify";
import { faultOfEmail } from "../../auth/names.ts";
import { type Problem, problem } from "../../errors.ts";
import { deed, type Sources } from "../../server/rpc/engine/caller.ts";
import type { People } from "../../storage/accounts/people.ts";

interface FailureOptions extends Sources {
  readonly accounts: Pick<People, "recordFailedSignIn">;
  readonly log: FastifyBaseLogger;
}

/**
 * Records a failed sign-in, without waiting: it takes longer for an existing
 * person, and the time of the answer must not reveal that.
 */
export function recordFailure(
  options: FailureOptions,
  { email, address }: { readonly email: string; readonly address: string },
): void {
  if (faultOfEmail(email) !== undefined) {
    return;
  }
  const by = { name: email, id: "", address };
  options.accounts
    .recordFailedSignIn({ ...deed(by, options), email })
    .catch((err: unknown) => options.log.warn({ err }, "a failed sign-in could not be recorded"));
}

/** The same error for an unknown address and a wrong password. */
export function signInFailed(): Problem {
  return problem("SIGN_IN_FAILED", "the e-mail address or the password is not right");
}
