/**
 * The head of a request as its function is shown it: the headers that the endpoint names, or all,
 * as far as they are passed on (`server/passed-headers.ts`). What is stored with a task has
 * neither `Authorization` nor `Cookie` unless the endpoint names them.
 */
import type { HandlerContext } from "@connectrpc/connect";
import { addressOf, isSecure } from "../../auth/principal.ts";
import { problem } from "../../errors.ts";
import {
  type HeaderField,
  MAX_HEAD_BYTES,
  MAX_HEAD_FIELDS,
  type RequestHead,
} from "../../protocol/heads.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";
import type { Payload } from "../../protocol/messages.ts";
import { callerIn } from "../../server/mounts/headers.ts";
import { passedValue } from "../../server/passed-headers.ts";
import { hostOf } from "../../server/rpc/engine/caller.ts";
import { isMountName } from "../../service/mounts.ts";

/** Headers that a stored request has only where its endpoint names them. */
const SECRET: ReadonlySet<string> = new Set(["authorization", "cookie"]);

/** Who calls, as the platform knows it. */
const CALLER = "tessera-caller";

type Context = Pick<HandlerContext, "requestHeader" | "requestMethod" | "url" | "values">;

/** The request, if the endpoint is shown it. Errors: REQUEST_INVALID for too many headers. */
export function shownRequest(ctx: Context, endpoint: EndpointManifest): RequestHead | undefined {
  if (endpoint.request === undefined) {
    return undefined;
  }
  if (!isMountName(endpoint.name)) {
    return requestHead(ctx, endpoint, endpoint.request.headers);
  }
  // The arguments hold the request itself; the head adds only who calls.
  const caller = callerIn(ctx.values);
  const headers: HeaderField[] = caller === undefined ? [] : [[CALLER, caller]];
  return { ...requestHead(ctx, endpoint, []), headers };
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
  const caller = callerIn(values);
  if (caller !== undefined && (takesAll || named.includes(CALLER))) {
    headers.push([CALLER, caller]);
  }
  for (const [name, value] of requestHeader) {
    if (name === CALLER) {
      // The platform alone says who calls.
      continue;
    }
    const isNamed = named.includes(name) || (takesAll && !(kind === "task" && SECRET.has(name)));
    const shown = isNamed ? passedValue(name, value, values) : undefined;
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
