/** Finds out who calls. */
import type { DescMethod } from "@bufbuild/protobuf";
import type { ContextValues, Interceptor } from "@connectrpc/connect";
import { Access } from "../../../../gen/tessera/v1/access_pb.js";
import {
  type Authenticate,
  addressOf,
  type Credentials,
  isSecure,
  type Principal,
  principalOf,
  setPrincipal,
} from "../../../auth/principal.ts";
import type { AccessOf } from "../engine/access.ts";

/** The headers that say who sends a request. */
export interface CredentialHeaders {
  readonly authorization: string | undefined;
  readonly cookie: string | undefined;
}

/**
 * Leaves the principal of a call in its context values; a promise only where
 * it is not known at once. Errors: TOKEN_INVALID.
 */
export type Identify = (
  method: DescMethod,
  headers: CredentialHeaders,
  values: ContextValues,
) => Promise<void> | undefined;

/**
 * A public method is open whatever the caller brings. It is told of a session
 * that is valid; an old cookie must not keep anyone from signing in again.
 */
export function createIdentify(authenticate: Authenticate, accessOf: AccessOf): Identify {
  const publicly = async (credentials: Credentials): Promise<Principal> => {
    try {
      return await authenticate({ ...credentials, authorization: undefined });
    } catch {
      return ANONYMOUS;
    }
  };
  return (method, { authorization, cookie }, values) => {
    const credentials = {
      authorization,
      cookie,
      address: addressOf(values),
      secure: isSecure(values),
    };
    let found: Principal | Promise<Principal>;
    if (accessOf(method) !== Access.PUBLIC) {
      found = authenticate(credentials);
    } else {
      found = cookie === undefined ? ANONYMOUS : publicly(credentials);
    }
    if (found instanceof Promise) {
      return found.then((principal) => void setPrincipal(values, principal));
    }
    setPrincipal(values, found);
    return undefined;
  };
}

const ANONYMOUS: Principal = { kind: "anonymous" };

/**
 * A face that had to know who calls before it read the body has found out
 * already and left the principal in the context.
 */
export function createAuthenticateInterceptor(identify: Identify): Interceptor {
  return (next) => (req) => {
    const { contextValues, header } = req;
    if (principalOf(contextValues) !== undefined) {
      return next(req);
    }
    const headers = {
      authorization: header.get("authorization") ?? undefined,
      cookie: header.get("cookie") ?? undefined,
    };
    const pending = identify(req.method, headers, contextValues);
    return pending === undefined ? next(req) : pending.then(() => next(req));
  };
}
