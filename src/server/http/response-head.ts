/**
 * What a function says of its answer: status, headers and cookies, as far as they are its own to
 * say. What belongs to one connection, to the platform or to browsers' trust in it is left out.
 */
import type { FastifyReply } from "fastify";
import { isPlatformCookie } from "../../auth/cookies.ts";
import type { ResponseHead } from "../../protocol/heads.ts";

/**
 * Headers that a function cannot set. Which sites may read an answer is the deployment's to say
 * (`access-control-`), and what is said of a whole host is the operator's.
 */
const KEPT_OUT =
  /^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|date|server|host|alt-svc|clear-site-data|strict-transport-security|public-key-pins|access-control-.*|cross-origin-.*|origin-agent-cluster|service-worker-allowed|x-content-type-options|x-request-id|tessera-.*|idempotent-replayed|preference-applied|:.*)$/;

/** What browsers show in its place, by its media type; they keep all else as a file. */
const SHOWN = /^(?:image|audio|video|text)\/|^application\/(?:pdf|xhtml\+xml)(?:;|$)/i;

/** How browsers take content of this type that has no name. Clients know a file by the header. */
export function dispositionOf(contentType: string): "inline" | "attachment" {
  return SHOWN.test(contentType) ? "inline" : "attachment";
}

/** Headers of which both say something: that of the function comes behind the platform's. */
const JOINED: ReadonlySet<string> = new Set(["content-security-policy", "vary"]);

/** Statuses whose answers have no content (RFC 9110, section 6.4.1). */
export function hasNoContent(status: number | undefined): boolean {
  return status === 204 || status === 205 || status === 304;
}

/**
 * Sets status and headers of an answer. `keepsType` is true where the platform gives the content
 * another form than the function did, which then has a type of its own.
 */
export function applyHead(
  reply: FastifyReply,
  { status, headers }: ResponseHead,
  { keepsType = false } = {},
): void {
  if (status !== undefined) {
    reply.code(status);
  }
  const values = new Map<string, string>();
  for (const [name, value] of headers) {
    if (name === "set-cookie") {
      const own = ownCookie(value);
      if (own !== undefined) {
        reply.header("set-cookie", own);
      }
    } else if (!KEPT_OUT.test(name) && !(keepsType && name.startsWith("content-"))) {
      const before = values.get(name);
      values.set(name, before === undefined ? value : `${before}, ${value}`);
    }
  }
  for (const [name, value] of values) {
    const own = JOINED.has(name) ? reply.getHeader(name) : undefined;
    reply.header(name, own === undefined ? value : `${own}, ${value}`);
  }
}

/**
 * A cookie as a deployment may set it: for the host that sets it, not for those of other
 * deployments beside it. Undefined for one of the platform's.
 */
export function ownCookie(value: string): string | undefined {
  const [pair = "", ...attributes] = value.split(";");
  if (isPlatformCookie(pair.split("=", 1)[0] ?? "")) {
    return undefined;
  }
  const own = attributes.filter((each) => !/^\s*domain\s*(?:=|$)/i.test(each));
  return [pair, ...own].join(";");
}
