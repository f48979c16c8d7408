/**
 * `tessera-platform/client` for Node. The deployment client speaks HTTP through
 * `fetch`. The platform client speaks Connect through Node's own HTTP, which
 * reports errors in more detail and streams in both directions. Browsers get
 * `browser.ts` instead, with the same exports.
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

/**
 * Creates a client of the platform. Calls reject with a `ConnectError`;
 * `errorFacts` reads its reason.
 */
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

/**
 * Resolves names below `localhost` to this machine (RFC 6761, 6.3), because not
 * every system does.
 */
const lookup: LookupFunction = (_hostname, options, done) => {
  const address = "127.0.0.1";
  return options.all === true ? done(null, [{ address, family: 4 }]) : done(null, address, 4);
};
