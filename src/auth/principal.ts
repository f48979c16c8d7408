import { type ContextValues, createContextKey } from "@connectrpc/connect";

/** Who is calling. */
export interface Principal {
  /** `anonymous` where no token is asked for. */
  readonly kind: "anonymous" | "token";
}

/**
 * Tells who is calling from the `Authorization` header; throws TOKEN_INVALID,
 * with the same message whatever is wrong with the token.
 */
export type Authenticate = (authorization: string | undefined) => Principal;

const principalKey = createContextKey<Principal | undefined>(undefined, {
  description: "who is calling",
});

/** The principal of a request that has been authenticated already. */
export function principalOf(values: ContextValues): Principal | undefined {
  return values.get(principalKey);
}

export function setPrincipal(values: ContextValues, principal: Principal): ContextValues {
  return values.set(principalKey, principal);
}
