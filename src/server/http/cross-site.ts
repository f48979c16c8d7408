/**
 * Without a token, whoever can reach the server may call it, and a browser can
 * reach what its owner's machine can: any page that it shows could call a
 * server on localhost. Browsers say where a request comes from; one of another
 * site that may change something is refused. Programs that are no browsers say
 * nothing, and pages of the server itself say its own origin.
 *
 * `Sec-Fetch-Site` (https://www.w3.org/TR/fetch-metadata/) decides where it is
 * sent, because a proxy may change the host but not the origin; else `Origin`
 * (RFC 6454, section 7) is compared with the host asked for.
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { problem } from "../../errors.ts";
import { type AllowedOrigins, isAllowedOrigin } from "./cors.ts";

/** They change nothing (RFC 9110, section 9.2.1). */
const SAFE = new Set(["GET", "HEAD", "OPTIONS"]);

/** Refuses what browsers send for pages of other sites, with ACCESS_DENIED; pages of `allowed` may call. */
export function refuseCrossSite(app: FastifyInstance, allowed: AllowedOrigins): void {
  app.addHook("onRequest", (req, _reply, done) => {
    const isLet = SAFE.has(req.method) || isAllowedOrigin(allowed, req.headers.origin);
    if (isLet || !isCrossSite(originOf(req))) {
      done();
    } else {
      done(
        problem(
          "ACCESS_DENIED",
          "this request comes from a page of another site, and without a token any page could make a browser send it: serve with --token, and send the token, or name the page's origin with --cors",
        ),
      );
    }
  });
}

/** What a browser says of where a request comes from. */
export interface RequestOrigin {
  /** `Sec-Fetch-Site`. */
  readonly site: string | null | undefined;
  /** `Origin`. */
  readonly origin: string | null | undefined;
  /** Host and port that were asked. */
  readonly host: string;
}

/** True for what a browser sends for a page of another site. */
export function isCrossSite({ site, origin, host }: RequestOrigin): boolean {
  if (site !== undefined && site !== null) {
    return site !== "same-origin" && site !== "none";
  }
  return origin !== undefined && origin !== null && hostOf(origin) !== host.toLowerCase();
}

/** True for the methods of HTTP that change nothing. */
export function isSafe(method: string): boolean {
  return SAFE.has(method);
}

function originOf({ headers, host }: FastifyRequest): RequestOrigin {
  const site = headers["sec-fetch-site"];
  return { site: Array.isArray(site) ? site[0] : site, origin: headers.origin, host };
}

/** Host and port of an origin; undefined for `null` and what is none. */
function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined;
}
