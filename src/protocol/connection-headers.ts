/** Headers of one connection alone, which nothing that passes a message on may pass with it (RFC 9110, section 7.6.1). */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Whether a header is of one connection alone, by its name in lower case. */
export function isOfConnection(name: string): boolean {
  return OF_CONNECTION.has(name);
}
