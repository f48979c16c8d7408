/** The variables of pip and uv, of skopeo, and of how the network is reached: nothing else of the environment. */

const NAMES =
  /^(?:(?:UV|PIP)_.+|SSL_CERT_(?:FILE|DIR)|REGISTRY_AUTH_FILE|NETRC|HOME|PATH|(?:HTTPS?|ALL|NO)_PROXY)$/i;

export function packageVariables(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => NAMES.test(name)));
}
