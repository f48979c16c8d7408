import { createCode, digestCode } from "../auth/one-time-codes.ts";
import type { Accounts } from "../storage/accounts/accounts.ts";

/**
 * The code with which the first person sets the platform up; undefined when
 * it is set up. A new one each time, because the last one may stand in
 * somebody's scrollback.
 */
export async function newSetupCode(
  accounts: Pick<Accounts, "needsSetup" | "putSetupCode">,
  now: () => number,
): Promise<string | undefined> {
  if (!(await accounts.needsSetup())) {
    return undefined;
  }
  const code = createCode();
  const isOpen = await accounts.putSetupCode({ digest: digestCode(code), nowMs: now() });
  return isOpen ? code : undefined;
}
