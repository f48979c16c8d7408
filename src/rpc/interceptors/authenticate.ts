import type { Interceptor } from "@connectrpc/connect";
import { type Authenticate, principalOf, setPrincipal } from "../../auth/principal.ts";

/**
 * Finds out who calls, for every method but those of the public services, and
 * refuses who may not. A face that had to know before it read the body has
 * done so already and left the principal in the context.
 *
 * @param publicServices full names of services that anyone may call.
 */
export function createAuthenticateInterceptor(
  authenticate: Authenticate,
  publicServices: ReadonlySet<string>,
): Interceptor {
  return (next) => (req) => {
    if (!publicServices.has(req.service.typeName) && principalOf(req.contextValues) === undefined) {
      const principal = authenticate(req.header.get("authorization") ?? undefined);
      setPrincipal(req.contextValues, principal);
    }
    return next(req);
  };
}
