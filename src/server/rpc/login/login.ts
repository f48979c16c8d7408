import type { ServiceImpl } from "@connectrpc/connect";
import type { LoginService } from "../../../../gen/tessera/v1/login_pb.js";
import type { FailureLimiter } from "../../../auth/failures.ts";
import type { KeyRing } from "../../../auth/keys.ts";
import type { Logins } from "../../../storage/accounts/logins.ts";
import type { Sources } from "../caller.ts";
import { browserLoginHandlers } from "./browser.ts";
import { deviceLoginHandlers } from "./device.ts";

export interface LoginOptions extends Sources {
  readonly accounts: Logins;
  readonly keys: Pick<KeyRing, "digest" | "digestUserCode" | "seal">;
  /** Of codes that were not right. */
  readonly limiter: FailureLimiter;
  /** Of device logins that are begun: anyone may. */
  readonly startLimiter: FailureLimiter;
  /** Where people reach the platform, without a slash at the end. */
  readonly publicUrl: string;
}

/** LoginService over the accounts. */
export function loginService(options: LoginOptions): Partial<ServiceImpl<typeof LoginService>> {
  return { ...browserLoginHandlers(options), ...deviceLoginHandlers(options) };
}
