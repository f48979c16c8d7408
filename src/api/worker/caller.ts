/** The token that a worker calls with. */
import type { ContextValues } from "@connectrpc/connect";
import { principalOf, type TokenPrincipal } from "../../auth/principal.ts";
import { problem } from "../../errors.ts";

/** Access control has let only tokens with worker access through. */
export function workerToken(values: ContextValues): TokenPrincipal {
  const principal = principalOf(values);
  if (principal?.kind !== "token" || !principal.access.worker) {
    throw problem("ACCESS_DENIED", "this asks for a token with worker access");
  }
  return principal;
}
