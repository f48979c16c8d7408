/**
 * Classifies requests without a response: never connected, connection lost, or
 * blocked by the browser.
 */
import { ConnectionLostError, type DeploymentError, UnreachableError } from "./errors.ts";

/** Error codes in the cause of Node's fetch when no connection was made. */
const NOT_CONNECTED = new Set([
  ...["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"],
  ...["UND_ERR_CONNECT_TIMEOUT", "ERR_SSL_WRONG_VERSION_NUMBER", "CERT_HAS_EXPIRED"],
  ...["DEPTH_ZERO_SELF_SIGNED_CERT", "SELF_SIGNED_CERT_IN_CHAIN", "ERR_TLS_CERT_ALTNAME_INVALID"],
  ...["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "ERR_SSL_PACKET_LENGTH_TOO_LONG"],
]);
/**
 * Returns the error for a request without a response. A browser does not say
 * whether it was sent.
 */
export function broken(url: string, err: unknown): DeploymentError {
  const code = codesOf(err).find((one) => NOT_CONNECTED.has(one)) ?? blockedPort(err);
  if (code !== undefined) {
    return new UnreachableError(
      `no server can be reached at ${url} (${code}): check the URL, and whether it runs`,
      { cause: err },
    );
  }
  return connectionLost(err, foreignPage(url));
}

/**
 * A hint about CORS for pages of another origin: a browser does not say why it
 * withholds a response.
 */
function foreignPage(url: string): string {
  const { location } = globalThis as { readonly location?: { readonly origin?: string } };
  const origin = location?.origin;
  return origin === undefined || origin === new URL(url).origin
    ? ""
    : `; or the server at ${url} does not let pages of ${origin} call it, which its setting --cors does`;
}

/** `fetch` refuses to connect to certain ports (https://fetch.spec.whatwg.org/#bad-port). */
function blockedPort(err: unknown): string | undefined {
  const { cause } = err as { readonly cause?: { readonly message?: unknown } };
  return cause?.message === "bad port" ? "a port that fetch does not connect to" : undefined;
}

/** Returns the error for a connection that broke after it was made. */
export function connectionLost(cause: unknown, perhaps = ""): ConnectionLostError {
  return new ConnectionLostError(
    `the connection broke before the whole answer was there: what was asked may have been done all the same, so look before doing it again${perhaps}`,
    { cause },
  );
}

/** Where requests go. */
export interface Route {
  readonly url: string;
  readonly deployment?: string | undefined;
}

/**
 * Resolves a name below `localhost` to this machine (RFC 6761, 6.3). Browsers
 * do that; Node asks the system, which may not. The host's first two labels
 * name the deployment, so the request then names it in the header instead.
 */
export function loopbackRoute(url: string, err: unknown): Route | undefined {
  const { protocol, hostname, port, pathname } = new URL(url);
  const unknown = codesOf(err).some((code) => code === "ENOTFOUND" || code === "EAI_AGAIN");
  const [app, organization, ...domain] = hostname.split(".");
  if (!unknown || protocol !== "http:" || domain.at(-1) !== "localhost") {
    return undefined;
  }
  const path = pathname.replace(/\/+$/, "");
  return { url: `http://localhost:${port || 80}${path}`, deployment: `${organization}/${app}` };
}

/** Lists the codes of an error and of all its causes. */
export function codesOf(err: unknown, depth = 0): string[] {
  if (!(err instanceof Error) || depth > 8) {
    return [];
  }
  const own = "code" in err && typeof err.code === "string" ? [err.code] : [];
  // A name with several addresses fails with one error for each.
  const each: unknown[] = err instanceof AggregateError ? err.errors : [];
  return [...own, ...[err.cause, ...each].flatMap((cause) => codesOf(cause, depth + 1))];
}
