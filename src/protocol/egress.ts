/**
 * What node and worker agree on for outward connections. A sandboxed worker has
 * no network but its own loopback. The node's egress proxy is a Unix socket in
 * the sandbox; the worker relays a port of its loopback to it, and the variables
 * of every HTTP client point to that port.
 */

/** Names the path of the egress proxy's socket in the worker's environment. */
export const EGRESS_SOCKET_VARIABLE = "TESSERA_EGRESS_SOCKET";

/** Port of the relay on the worker's own loopback, the customary one of HTTP proxies. */
export const EGRESS_RELAY_PORT = 3128;

/** Names of the worker's own loopback, which clients reach without the proxy. */
const LOOPBACK_NAMES = ["localhost", "127.0.0.1", "::1"];

interface EgressEnvironmentOptions {
  /** The path of the proxy's socket in the sandbox. */
  readonly socketPath: string;
  /**
   * Whether the proxy may connect to this name of the loopback of the machine. Clients then go to
   * the proxy with it: in the sandbox it would be the worker's own. Default: to none.
   */
  readonly leadsOut?: (name: string) => boolean;
}

/** The environment of a worker that has an egress proxy. */
export function egressEnvironment({
  socketPath,
  leadsOut = () => false,
}: EgressEnvironmentOptions): { readonly [name: string]: string } {
  const relay = `127.0.0.1:${EGRESS_RELAY_PORT}`;
  const variables = {
    HTTP_PROXY: `http://${relay}`,
    HTTPS_PROXY: `http://${relay}`,
    // Names are resolved by the proxy, since the sandbox has no resolver.
    ALL_PROXY: `socks5h://${relay}`,
    NO_PROXY: LOOPBACK_NAMES.filter((name) => !leadsOut(name)).join(),
  };
  const lower = Object.entries(variables).map(([name, value]) => [name.toLowerCase(), value]);
  return {
    ...variables,
    ...Object.fromEntries(lower),
    // Node's own clients (`fetch`, `http`, `https`) read the variables only with this.
    NODE_USE_ENV_PROXY: "1",
    [EGRESS_SOCKET_VARIABLE]: socketPath,
  };
}
