/**
 * The bearer token in a request, as RFC 6750 writes it. A request without one, or with another
 * scheme, has brought no credential: it is told so apart from one whose token is not valid.
 */
import { problem } from "../errors.ts";

const BEARER = /^Bearer(?: +(\S.*)?)?$/i;

/**
 * The token in the header `Authorization`; undefined for one with spaces, which no token has.
 * Errors: TOKEN_MISSING without a token; the header is not quoted, since it may be a token.
 */
export function bearerToken(authorization: string | undefined): string | undefined {
  const token = BEARER.exec(authorization ?? "")?.[1]?.trimEnd();
  if (token === undefined) {
    throw problem(
      "TOKEN_MISSING",
      authorization
        ? "the header Authorization has no bearer token: send Authorization: Bearer <token>"
        : "this needs a token: send the header Authorization: Bearer <token>",
    );
  }
  return /\s/.test(token) ? undefined : token;
}
