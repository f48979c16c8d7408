import type { ServiceImpl } from "@connectrpc/connect";
import type { LoginService } from "../../../gen/tessera/v1/login_pb.js";
import { type BrowserLoginOptions, browserLoginHandlers } from "./browser.ts";
import { type DeviceLoginOptions, deviceLoginHandlers } from "./device.ts";

type LoginServiceOptions = BrowserLoginOptions & DeviceLoginOptions;

/** LoginService over the accounts. */
export function loginService(
  options: LoginServiceOptions,
): Partial<ServiceImpl<typeof LoginService>> {
  return { ...browserLoginHandlers(options), ...deviceLoginHandlers(options) };
}
