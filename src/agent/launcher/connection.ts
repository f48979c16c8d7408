/** The launcher's connection to its platform: gRPC over HTTP/2, with the token in each call. */
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { LauncherService } from "../../../gen/tessera/v1/launcher_pb.js";

/**
 * How often a connection on which nothing is said is tried; one that is half open ends so. What is
 * wanted is followed all the time: one without a call need not be tried, and the session manager
 * would also try one that was closed, and throw.
 */
const PING_INTERVAL_MS = 20_000;
/** How long the platform may take to answer that. */
const PING_TIMEOUT_MS = 10_000;

interface Connection extends Disposable {
  readonly client: Client<typeof LauncherService>;
}

/** Opens a connection with the first call, and again after one that broke. */
export function connect({
  url,
  token,
}: {
  readonly url: string;
  readonly token: string;
}): Connection {
  const sessionManager = new Http2SessionManager(url, {
    pingIntervalMs: PING_INTERVAL_MS,
    pingTimeoutMs: PING_TIMEOUT_MS,
  });
  const transport = createGrpcTransport({
    baseUrl: url,
    sessionManager,
    interceptors: [
      (next) => (req) => {
        req.header.set("authorization", `Bearer ${token}`);
        return next(req);
      },
    ],
  });
  return {
    client: createClient(LauncherService, transport),
    [Symbol.dispose]: () => sessionManager.abort(),
  };
}
