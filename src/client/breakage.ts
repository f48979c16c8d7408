/** What it means that no answer came, as far as that can be known. */
import { ConnectionLostError, type DeploymentError, UnreachableError } from "./errors.ts";

/** What Node's fetch names as cause where no connection came about. */
const NOT_CONNECTED = new Set([
  ...["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"],
  ...["UND_ERR_CONNECT_TIMEOUT", "ERR_SSL_WRONG_VERSION_NUMBER", "CERT_HAS_EXPIRED"],
  ...["DEPTH_ZERO_SELF_SIGNED_CERT", "SELF_SIGNED_CERT_IN_CHAIN", "ERR_TLS_CERT_ALTNAME_INVALID"],
  ...["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "ERR_SSL_PACKET_LENGTH_TOO_LONG"],
]);
/** What a request without an answer means; a browser does not say whether it was sent. */
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

/** In a page of another origin a browser does not say why it keeps an answer back. */
function foreignPage(url: string): string {
  const { location } = globalThis as { readonly location?: { readonly origin?: string } };
  const origin = location?.origin;
  return origin === undefined || origin === new URL(url).origin
    ? ""
    : `; or the server at ${url} does not let pages of ${origin} call it, which its setting --cors does`;
}

/** `fetch` connects to no port of a list (https://fetch.spec.whatwg.org/#bad-port). */
function blockedPort(err: unknown): string | undefined {
  const { cause } = err as { readonly cause?: { readonly message?: unknown } };
  return cause?.message === "bad port" ? "a port that fetch does not connect to" : undefined;
}

/** The end of a connection that had begun. */
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
 * Names below `localhost` are this machine (RFC 6761, 6.3). Browsers know that;
 * Node asks the system, which may not. Then the deployment, which the host
 * names by its first two labels, is named by the header instead.
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

/** The codes of an error and of everything that caused it. */
export function codesOf(err: unknown, depth = 0): string[] {
  if (!(err instanceof Error) || depth > 8) {
    return [];
  }
  const own = "code" in err && typeof err.code === "string" ? [err.code] : [];
  // A name with several addresses fails with one error for each.
  const each: unknown[] = err instanceof AggregateError ? err.errors : [];
  return [...own, ...[err.cause, ...each].flatMap((cause) => codesOf(cause, depth + 1))];
}
