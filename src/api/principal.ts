/** AuthService of a standalone server. */
import type { ServiceImpl } from "@connectrpc/connect";
import { type AuthService, PrincipalKind } from "../../gen/tessera/v1/auth_pb.js";
import { callerOf } from "../server/rpc/engine/caller.ts";

/** The part of AuthService that a server without people has: callers can check whether their token is valid. */
export const introspection: Partial<ServiceImpl<typeof AuthService>> = {
  getCurrentPrincipal(_req, ctx) {
    return callerOf(ctx).principal.kind === "shared"
      ? { kind: PrincipalKind.SHARED_TOKEN }
      : { kind: PrincipalKind.ANONYMOUS };
  },
};
