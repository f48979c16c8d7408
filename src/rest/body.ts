/** Reads request bodies with a limit. */
import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import { problem } from "../errors.ts";

/**
 * How much of a body that is too large is thrown away so that its sender gets
 * to read the answer, before its connection is cut.
 */
const DISCARD_BYTES = 256 * 1024 * 1024;

/**
 * The whole body. Errors: BODY_TOO_LARGE as soon as that is known; the rest of
 * the body is then discarded as it arrives. BODY_MALFORMED when the sender
 * stops in the middle.
 */
export function readBody(
  req: IncomingMessage | Http2ServerRequest,
  maxBytes: number,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let refused = false;
    const refuse = () => {
      refused = true;
      chunks.length = 0;
      reject(problem("BODY_TOO_LARGE", `the body is larger than ${maxBytes} bytes; send less`));
    };
    if (Number(req.headers["content-length"] ?? 0) > maxBytes) {
      refuse();
    }
    req.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > DISCARD_BYTES) {
        req.destroy();
      } else if (!refused && size > maxBytes) {
        refuse();
      } else if (!refused) {
        chunks.push(chunk);
      }
    });
    const broken = () => reject(problem("BODY_MALFORMED", "the body ended before its end"));
    req.once("end", () => {
      req.off("close", broken); // Comes after every request, and an error is costly to make.
      resolve(only(chunks) ?? Buffer.concat(chunks));
    });
    req.once("error", broken);
    req.once("close", broken);
    if (req.destroyed) {
      broken();
    }
  });
}

function only(chunks: readonly Buffer[]): Buffer | undefined {
  return chunks.length === 1 ? chunks[0] : undefined;
}
