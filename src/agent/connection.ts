/**
 * The connection to the platform: gRPC over HTTP/2, with the token in each call. A connection on
 * which nothing is answered may be half open, so each attempt to reach the platform makes a new
 * one, and ends the one before.
 */
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { WorkerService } from "../../gen/tessera/v1/worker_pb.js";
import { errorFacts } from "../client/error.ts";

export type WorkerClient = Client<typeof WorkerService>;

export interface PlatformConnection extends Disposable {
  readonly client: WorkerClient;
}

/** Opens a connection with the first call. */
export function connect({
  url,
  token,
}: {
  readonly url: string;
  readonly token: string;
}): PlatformConnection {
  const sessionManager = new Http2SessionManager(url);
  const transport = createGrpcTransport({
    baseUrl: url,
    sessionManager,
    // Calls arrive in many small messages: compressing each costs the node more than it saves.
    acceptCompression: [],
    interceptors: [
      (next) => (req) => {
        req.header.set("authorization", `Bearer ${token}`);
        return next(req);
      },
    ],
  });
  return {
    client: createClient(WorkerService, transport),
    [Symbol.dispose]: () => sessionManager.abort(),
  };
}

/** What an error of a call means for a worker. */
type RefusalKind =
  /** The platform will not have this worker, whatever it tries. */
  | "refused"
  /** The session is over. */
  | "expired"
  /** Try again. */
  | "passing";

/** `isKnown`: the platform has taken this worker before. */
export function refusalOf(err: unknown, isKnown: boolean): RefusalKind {
  const { code, reason } = { ...errorFacts(err), code: ConnectError.from(err).code };
  if (reason === "WORKER_SESSION_EXPIRED" || reason === "WORKER_REPLACED") {
    return "expired";
  }
  if (code === Code.Unauthenticated || code === Code.PermissionDenied) {
    return "refused";
  }
  if (reason === "WORKER_INCOMPATIBLE" || code === Code.Unimplemented) {
    return "refused";
  }
  // A deployment that was there comes back, for all that a node knows that has just started.
  return !isKnown && (code === Code.NotFound || code === Code.InvalidArgument)
    ? "refused"
    : "passing";
}

/** What was wrong, in the platform's own words if it has said it. */
export function faultOf(err: unknown): string {
  const { rawMessage } = ConnectError.from(err);
  return errorFacts(err).reason === undefined
    ? `the platform cannot be reached (${rawMessage})`
    : rawMessage;
}
