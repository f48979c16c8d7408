/**
 * `tessera/client` in a browser: bundlers take it by the condition `browser` of
 * the package. The client of a deployment is the same as in Node; that of the
 * platform goes by `fetch`, and therefore cannot stream towards the server.
 */
import type { UniversalClientRequest, UniversalClientResponse } from "@connectrpc/connect/protocol";
import { createTransport } from "@connectrpc/connect/protocol-connect";
import {
  bearers,
  platformClient,
  type TesseraClient,
  type TesseraClientOptions,
} from "./platform.ts";

export * from "./deployment.ts";
export * from "./platform.ts";

/** Connects to a server. Errors of calls are `ConnectError`s with a reason of the catalogue. */
export function createTesseraClient(options: TesseraClientOptions): TesseraClient {
  const { url, token, timeoutMs } = options;
  return platformClient(
    createTransport({
      baseUrl: url,
      httpClient: send,
      useBinaryFormat: false,
      interceptors: bearers(token),
      acceptCompression: [],
      sendCompression: null,
      compressMinBytes: 0,
      readMaxBytes: MAX_MESSAGE_BYTES,
      writeMaxBytes: MAX_MESSAGE_BYTES,
      ...(timeoutMs !== undefined && { defaultTimeoutMs: timeoutMs }),
    }),
  );
}

/** What Connect can frame. */
const MAX_MESSAGE_BYTES = 0xffffffff;

/** Browsers send no stream over HTTP/1.1, so a request is whole before it goes. */
async function send(req: UniversalClientRequest): Promise<UniversalClientResponse> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  for await (const chunk of req.body ?? []) {
    chunks.push(chunk as Uint8Array<ArrayBuffer>);
  }
  const response = await fetch(req.url, {
    method: req.method,
    headers: req.header,
    body: chunks.length === 0 ? null : new Blob(chunks),
    signal: req.signal ?? null,
  });
  return {
    status: response.status,
    header: response.headers,
    body: chunksOf(response),
    trailer: new Headers(),
  };
}

async function* chunksOf({ body }: Response): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = body?.getReader();
  try {
    for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
      yield next.value;
    }
  } finally {
    // Of a stream that is broken already there is nothing more to hear.
    await reader?.cancel().catch(() => {});
  }
}
