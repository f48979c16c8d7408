/**
 * `tessera-platform/client` for browsers; bundlers select it by the package's
 * `browser` condition. The deployment client is the same as in Node. The
 * platform client uses `fetch` and therefore cannot stream to the server.
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

/**
 * Creates a client of the platform. Calls reject with a `ConnectError`;
 * `errorFacts` reads its reason.
 */
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

/** Message to or from the platform: what Connect can frame. */
const MAX_MESSAGE_BYTES = 0xffffffff;

/** Browsers do not stream requests over HTTP/1.1, so the body is buffered first. */
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
    // The stream may be broken already; that is not a second error.
    await reader?.cancel().catch(() => {});
  }
}
