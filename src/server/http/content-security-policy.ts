/**
 * The Content-Security-Policy of what browsers get: of the platform's pages, of the page of a
 * refused call, and of results of functions, which must not run as pages of this origin.
 * https://www.w3.org/TR/CSP3/
 */
import { createHash } from "node:crypto";

/** Only this server's files; results are shown from memory (`blob:`). */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob: data:",
  "media-src blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
];

interface PageOptions {
  /** Elements may have a `style` of their own, as coloured code has. Default: none may. */
  readonly styleAttributes?: boolean;
}

/** The headers of a page of the platform and of its files. */
export function pageHeaders({ styleAttributes = false }: PageOptions = {}) {
  const policy = [...PAGE_POLICY, ...(styleAttributes ? ["style-src-attr 'unsafe-inline'"] : [])];
  return {
    "content-security-policy": policy.join("; "),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
  };
}

/** The policy of a page with this style and nothing else. */
export function styledPagePolicy(style: string): string {
  const digest = createHash("sha256").update(style).digest("base64");
  return `default-src 'none'; style-src 'sha256-${digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
}

/**
 * How browsers show a result: as a page of an origin of its own, whose scripts reach nothing of the
 * deployment's host, such as a token that its page was given.
 */
export const SANDBOX =
  "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts";
