/**
 * Forwards plain HTTP requests that name their target in absolute form (RFC 9112,
 * section 3.2.2), each on a connection of its own.
 */
import { type IncomingMessage, request, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { pipeline } from "node:stream";
import { isOfConnection } from "../../protocol/connection-headers.ts";
import { type Asked, EgressFailedError, ProxyRequestError, refusalOf } from "./refusals.ts";

/** Headers of one request to the egress proxy, and of one answer through it. */
export const MAX_PROXY_HEADER_BYTES = 64 * 1024;

interface ForwardOptions {
  readonly open: (asked: Asked) => Promise<Socket>;
  readonly idleMs: number;
}

/** Sends a request on, and its answer back. Rejects before it has sent anything. */
export async function forward(
  req: IncomingMessage,
  res: ServerResponse,
  { open, idleMs }: ForwardOptions,
): Promise<void> {
  const url = targetOf(req.url ?? "");
  const port = url.port === "" ? 80 : Number(url.port);
  const upstream = await open({
    ...{ host: url.hostname.replace(/^\[|\]$/g, ""), port },
    isPlain: true,
  });
  const outgoing = request({
    method: req.method ?? "GET",
    path: `${url.pathname}${url.search}`,
    headers: [
      // The header may name another host than the one that was allowed.
      ...["Host", url.host],
      ...endToEnd(req.rawHeaders, "host"),
      ...(req.headers["transfer-encoding"] === undefined ? [] : ["Transfer-Encoding", "chunked"]),
      ...["Connection", "close"],
    ],
    maxHeaderSize: MAX_PROXY_HEADER_BYTES,
    createConnection: () => upstream,
    timeout: idleMs,
  });
  const fail = (err?: Error | null): void => {
    if (err) {
      answer(res, new EgressFailedError(`${url.host} broke off`, { cause: err }));
    }
  };
  outgoing.on("timeout", () => outgoing.destroy(new Error("silence")));
  outgoing.on("response", (response) => {
    const { statusCode = 502, statusMessage } = response;
    try {
      res.writeHead(statusCode, statusMessage, endToEnd(response.rawHeaders));
    } catch (err) {
      // Node's parser takes a few bytes that its writer does not.
      outgoing.destroy(err as Error);
      return;
    }
    pipeline(response, res, fail);
  });
  outgoing.on("error", fail);
  res.once("close", () => outgoing.destroy());
  pipeline(req, outgoing, fail);
}

/** Answers a failure; a client that has part of an answer is cut off. */
export function answer(res: ServerResponse, err: unknown): void {
  if (res.headersSent || res.destroyed) {
    res.destroy();
    return;
  }
  const { status, text } = refusalOf(err);
  res.writeHead(status, { "content-type": "text/plain; charset=utf-8", connection: "close" });
  res.end(text);
}

function targetOf(text: string): URL {
  const url = /^http:\/\//i.test(text) && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || url.port === "0") {
    throw new ProxyRequestError("this is a proxy: it takes http:// addresses, and CONNECT");
  }
  return url;
}

/** Names and values, alternating, without those for one connection only. */
function endToEnd(raw: readonly string[], ...without: readonly string[]): string[] {
  const dropped = new Set(["proxy-authenticate", ...without]);
  for (let index = 0; index < raw.length; index += 2) {
    if (raw[index]?.toLowerCase() === "connection") {
      for (const name of raw[index + 1]?.split(",") ?? []) {
        dropped.add(name.trim().toLowerCase());
      }
    }
  }
  // Without its length, a message could end in another place than its sender said.
  dropped.delete("content-length");
  return raw.filter((_, index) => {
    const name = raw[index - (index % 2)]?.toLowerCase() ?? "";
    return !dropped.has(name) && !isOfConnection(name);
  });
}
