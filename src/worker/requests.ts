/** Requests to mounted servers, as handlers and functions see them. */
import type { IncomingMessage } from "node:http";
import { fieldsOf } from "../protocol/heads.ts";

/** The node has bounded them. */
export const MAX_HEADER_BYTES = 512 * 1024;

/** A name or an address, with a port; anything else would make another URL. */
const HOST = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;

/** The URL of a request as its caller has sent it, with the scheme that the node tells. */
export function urlOf({ url = "/", headers }: IncomingMessage): string {
  const host = HOST.test(headers.host ?? "") ? headers.host : "localhost";
  return `${headers["x-forwarded-proto"] ?? "http"}://${host}${url}`;
}

export function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, value] of fieldsOf(rawHeaders)) {
    headers.append(name, value);
  }
  return headers;
}
