/**
 * The head of a request as its function is shown it: the headers that the endpoint names, or all.
 *
 * What authenticated the caller to this platform is not the function's to know: a token, the
 * platform's cookies, and the secret of a proxy never reach it. An `Authorization` that the
 * platform did not use is the function's, as it is without a platform before it. What is stored
 * with a task has neither `Authorization` nor `Cookie` unless the endpoint names them.
 */
import type { HandlerContext } from "@connectrpc/connect";
import { isPlatformCookie } from "../../auth/cookies.ts";
import { addressOf, isSecure, principalOf } from "../../auth/principal.ts";
import { problem } from "../../errors.ts";
import {
  type HeaderField,
  MAX_HEAD_BYTES,
  MAX_HEAD_FIELDS,
  type RequestHead,
} from "../../protocol/heads.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";
import type { Payload } from "../../protocol/messages.ts";
import { PROXY_SECRET_HEADER } from "../../server/proxies.ts";
import { hostOf } from "../../server/rpc/engine/caller.ts";

/** What is of one connection (RFC 9110, section 7.6.1), or of the platform alone. */
const HIDDEN: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  PROXY_SECRET_HEADER,
]);

/** Headers that a stored request has only where its endpoint names them. */
const SECRET: ReadonlySet<string> = new Set(["authorization", "cookie"]);

type Context = Pick<HandlerContext, "requestHeader" | "requestMethod" | "url" | "values">;

/** The request, if the endpoint is shown it. Errors: REQUEST_INVALID for too many headers. */
export function shownRequest(ctx: Context, endpoint: EndpointManifest): RequestHead | undefined {
  return endpoint.request && requestHead(ctx, endpoint, endpoint.request.headers);
}

/** The arguments with the request that they came with. */
export function withRequest(payload: Payload, request: RequestHead | undefined): Payload {
  return request === undefined ? payload : { ...payload, request };
}

function requestHead(
  { requestHeader, requestMethod, url, values }: Context,
  { name: endpoint, kind }: EndpointManifest,
  named: readonly string[],
): RequestHead {
  const headers: HeaderField[] = [];
  const takesAll = named.includes("*");
  for (const [name, value] of requestHeader) {
    const isNamed = named.includes(name) || (takesAll && !(kind === "task" && SECRET.has(name)));
    const shown = isNamed && !HIDDEN.has(name) ? shownValue(name, value, values) : undefined;
    if (shown !== undefined) {
      headers.push([name, shown]);
    }
  }
  const bytes = headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  if (headers.length > MAX_HEAD_FIELDS || bytes > MAX_HEAD_BYTES) {
    const message = `${endpoint} is shown the headers of its requests: at most ${MAX_HEAD_FIELDS} of ${MAX_HEAD_BYTES} bytes together, and these are ${headers.length} of ${bytes}`;
    throw problem("REQUEST_INVALID", message);
  }
  const path = url.replace(/^[a-z]+:\/\/[^/]*/i, "");
  const scheme = isSecure(values) ? "https" : "http";
  return {
    method: requestMethod,
    url: `${scheme}://${hostOf(values)}${path}`,
    headers,
    client: addressOf(values),
  };
}

/** The value without what the platform was told; undefined when nothing is left. */
function shownValue(
  name: string,
  value: string,
  values: HandlerContext["values"],
): string | undefined {
  if (name === "authorization") {
    return principalOf(values)?.kind === "anonymous" ? value : undefined;
  }
  if (name === "cookie") {
    const pairs = value.split(";").map((pair) => pair.trim());
    return (
      pairs.filter((pair) => !isPlatformCookie(pair.split("=", 1)[0] ?? "")).join("; ") || undefined
    );
  }
  return value;
}
