/**
 * What of a request's headers the code of a deployment is given.
 *
 * What authenticated the caller to this platform is not the code's to know: a token, the
 * platform's cookies, and the secret of a proxy never reach it. An `Authorization` that the
 * platform did not use is the code's, as it is without a platform before it.
 */
import type { ContextValues } from "@connectrpc/connect";
import { isPlatformCookie } from "../auth/cookies.ts";
import { principalOf } from "../auth/principal.ts";
import { isOfConnection } from "../protocol/connection-headers.ts";
import { PROXY_SECRET_HEADER } from "./proxies.ts";

/** The value of a header, without what the platform was told; undefined when nothing is left. */
export function passedValue(
  name: string,
  value: string,
  values: ContextValues,
): string | undefined {
  if (isOfConnection(name) || name === PROXY_SECRET_HEADER) {
    return undefined;
  }
  if (name === "authorization") {
    return principalOf(values)?.kind === "anonymous" ? value : undefined;
  }
  if (name === "cookie") {
    const pairs = value.split(";").map((pair) => pair.trim());
    return (
      pairs.filter((pair) => !isPlatformCookie(pair.split("=", 1)[0] ?? "")).join("; ") || undefined
    );
  }
  return value;
}
