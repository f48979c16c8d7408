/** Large bodies for tests: made as they are sent, and never held. */
import { createHash, type Hash } from "node:crypto";
import { once } from "node:events";
import { request } from "node:http";
import { json as readJson } from "node:stream/consumers";

const BLOCK_BYTES = 1 << 20;
const BOUNDARY = "a-boundary-that-is-not-in-the-files";

export interface Upload {
  readonly status: number;
  readonly body: unknown;
  /** Of the file's bytes, in hexadecimal. */
  readonly sha256: string;
}

/** The bytes of a file, one block after the other, each different. */
export function* blocks(size: number, hash?: Hash): Generator<Buffer> {
  const block = createHash("shake256", { outputLength: BLOCK_BYTES }).update("upload").digest();
  for (let sent = 0; sent < size; sent += BLOCK_BYTES) {
    const copy = Buffer.from(block.subarray(0, Math.min(BLOCK_BYTES, size - sent)));
    copy[0] = sent / BLOCK_BYTES;
    hash?.update(copy);
    yield copy;
  }
}

/** The head of a form's part with a file. */
export function partHead(name: string, filename: string): string {
  return `\r\n--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"; filename="${filename}"\r\nContent-Type: application/octet-stream\r\n\r\n`;
}

export function formRequest(port: number, path: string, headers: Record<string, string> = {}) {
  return request({
    host: "127.0.0.1",
    port,
    path,
    method: "POST",
    headers: { "content-type": `multipart/form-data; boundary=${BOUNDARY}`, ...headers },
  });
}

/** Posts a form with one file of this size. */
export async function upload(
  port: number,
  path: string,
  { bytes, headers }: { readonly bytes: number; readonly headers?: Record<string, string> },
): Promise<Upload> {
  const hash = createHash("sha256");
  const req = formRequest(port, path, headers);
  const answered = once(req, "response");
  answered.catch(() => {});
  req.write(partHead("file", "large.bin"));
  for (const block of blocks(bytes, hash)) {
    await new Promise<void>((resolve) => req.write(block, () => resolve()));
  }
  req.end(`\r\n--${BOUNDARY}--\r\n`);
  const [res] = await answered;
  return { status: res.statusCode, body: await readJson(res), sha256: hash.digest("hex") };
}
