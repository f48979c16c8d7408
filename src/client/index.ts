/**
 * `tessera/client`, where Node runs it. The client of a deployment speaks HTTP
 * by `fetch`; that of the platform speaks Connect by Node's own HTTP, which
 * tells more of what went wrong and streams in both directions. Browsers get
 * `browser.ts` in its place, with the same exports.
 */
import type { LookupFunction } from "node:net";
import { createConnectTransport } from "@connectrpc/connect-node";
import {
  bearers,
  platformClient,
  type TesseraClient,
  type TesseraClientOptions,
} from "./platform.ts";

export * from "./deployment.ts";
export * from "./platform.ts";

/** Connects to a server. Errors of calls are `ConnectError`s with a reason of the catalogue. */
export function createTesseraClient(options: TesseraClientOptions): TesseraClient {
  const { url, token, timeoutMs } = options;
  return platformClient(
    createConnectTransport({
      baseUrl: url,
      httpVersion: "1.1",
      interceptors: bearers(token),
      ...(timeoutMs !== undefined && { defaultTimeoutMs: timeoutMs }),
      ...(new URL(url).hostname.endsWith(".localhost") && { nodeOptions: { lookup } }),
    }),
  );
}

/** Names below `localhost` are this machine (RFC 6761, 6.3), which not every system knows. */
const lookup: LookupFunction = (_hostname, options, done) => {
  const address = "127.0.0.1";
  return options.all === true ? done(null, [{ address, family: 4 }]) : done(null, address, 4);
};
