import { basename } from "node:path";
import { Busboy } from "@fastify/busboy";
import { problem } from "../../errors.ts";
import type { FileValue } from "../../sdk/protocol.ts";

/** One part of a multipart/form-data body (RFC 7578). */
export type FormPart =
  | { readonly name: string; readonly text: string }
  | { readonly name: string; readonly file: FileValue };

/** A body has at most this many parts; its size is bounded before it is read. */
const MAX_PARTS = 2_000;

/** Reads the parts of a body in order; rejects with BODY_MALFORMED. */
export function readMultipart(contentType: string, data: Uint8Array): Promise<FormPart[]> {
  return new Promise((resolve, reject) => {
    const fail = (detail: string): void =>
      reject(problem("BODY_MALFORMED", `the body is not multipart/form-data: ${detail}`));
    let parser: InstanceType<typeof Busboy>;
    try {
      parser = new Busboy({
        headers: { "content-type": contentType },
        limits: {
          parts: MAX_PARTS,
          fieldNameSize: 256,
          fieldSize: data.byteLength,
          headerPairs: 20,
        },
      });
    } catch (err) {
      fail(err instanceof Error ? err.message : String(err));
      return;
    }
    const parts: FormPart[] = [];
    const checkName = (name: string | undefined): void => {
      if (!name) {
        fail("a part has no name");
      }
    };
    parser.on("field", (name, text, nameTruncated) => {
      if (nameTruncated) {
        fail("the name of a part is too long");
      }
      checkName(name);
      parts.push({ name, text });
    });
    parser.on("file", (name, stream, filename, _encoding, mimeType) => {
      checkName(name);
      const chunks: Buffer[] = [];
      // A body that ends in the middle of a file is an error of the file's stream too.
      stream.on("error", (err: Error) => fail(err.message));
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        const file = { contentType: mimeType, data: Buffer.concat(chunks) };
        parts.push({ name, file: filename ? { ...file, filename: basename(filename) } : file });
      });
    });
    parser.on("partsLimit", () => fail(`it has more than ${MAX_PARTS} parts`));
    parser.on("error", (err) => fail(err instanceof Error ? err.message : String(err)));
    parser.on("finish", () => resolve(parts));
    parser.end(Buffer.from(data.buffer, data.byteOffset, data.byteLength));
  });
}
