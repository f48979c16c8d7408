/**
 * A streaming parser for multipart/form-data (RFC 7578). Files are passed on as
 * streams in the order of the body, with back-pressure: the body is read no faster
 * than they are.
 */
import { basename } from "node:path";
import type { Readable } from "node:stream";
import { Busboy } from "@fastify/busboy";
import { problem } from "../../errors.ts";
import type { FileFacts } from "../../protocol/messages.ts";

/** Parts of a multipart body; its size is bounded where it is read. */
const MAX_FORM_PARTS = 2_000;

/** Receives the parts of a body. An error that it throws ends the reading. */
export interface PartsTaker {
  takeText(name: string, text: string): void;
  /** Reads `chunks` to the end; resolves when that is done. */
  takeFile(name: string, facts: FileFacts, chunks: AsyncIterable<Uint8Array>): Promise<void>;
}

/**
 * Resolves when all parts were taken. Rejects with BODY_MALFORMED, with
 * BODY_TOO_LARGE for a text of more than `maxTextBytes`, or with an error of `chunks`
 * or of the taker, but not before the taker has finished with every file.
 */
export async function readMultipart(
  contentType: string,
  chunks: AsyncIterable<Uint8Array>,
  { taker, maxTextBytes }: { readonly taker: PartsTaker; readonly maxTextBytes: number },
): Promise<void> {
  await new MultipartReading(contentType, taker, maxTextBytes).read(chunks);
}

class MultipartReading {
  readonly #parser: InstanceType<typeof Busboy>;
  readonly #taker: PartsTaker;
  readonly #files: Promise<void>[] = [];
  readonly #open = new Set<Readable>();
  #failure: { readonly err: unknown } | undefined;
  /** Rejects the promise that the reader awaits. */
  #interrupt: ((err: unknown) => void) | undefined;

  constructor(contentType: string, taker: PartsTaker, maxTextBytes: number) {
    this.#taker = taker;
    const parser = createParser(contentType, maxTextBytes);
    this.#parser = parser;
    parser.on("field", (name, text, nameTruncated, textTruncated) => {
      this.#guard(() => {
        checkName(name, nameTruncated);
        if (textTruncated) {
          const message = `the text ${JSON.stringify(name)} is larger than ${maxTextBytes} bytes; send it as a file, or less`;
          throw problem("BODY_TOO_LARGE", message);
        }
        taker.takeText(name, text);
      });
    });
    parser.on("file", (name, stream, filename, _encoding, mimeType) => {
      // A body that ends in the middle of a file is an error of the file's stream too.
      stream.on("error", (err: Error) => this.#fail(malformed(err.message)));
      this.#guard(() => checkName(name, false));
      const named = filename ? { filename: basename(filename) } : {};
      this.#takeFile(name, { contentType: mimeType, ...named }, stream);
    });
    parser.on("partsLimit", () =>
      this.#fail(malformed(`it has more than ${MAX_FORM_PARTS} parts`)),
    );
    parser.on("error", (err) =>
      this.#fail(malformed(err instanceof Error ? err.message : String(err))),
    );
  }

  async read(chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const finished = new Promise<void>((resolve) => this.#parser.once("finish", () => resolve()));
    try {
      for await (const chunk of chunks) {
        await this.#write(chunk);
      }
      this.#parser.end();
      await this.#unlessFailed(finished);
      await this.#unlessFailed(Promise.all(this.#files));
    } catch (err) {
      this.#failure ??= { err };
      const { err: first } = this.#failure;
      for (const stream of this.#open) {
        stream.destroy(first instanceof Error ? first : new Error(String(first)));
      }
      await Promise.all(this.#files);
      throw first;
    }
  }

  #takeFile(name: string, facts: FileFacts, stream: Readable): void {
    this.#open.add(stream);
    const taken = this.#taker
      .takeFile(name, facts, stream)
      .catch((err: unknown) => this.#fail(err))
      .finally(() => this.#open.delete(stream));
    this.#files.push(taken);
  }

  #write(chunk: Uint8Array): Promise<void> {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    return this.#unlessFailed(
      new Promise((resolve) => this.#parser.write(bytes, () => resolve(undefined))),
    );
  }

  /** Awaits a promise, but rejects as soon as the reading has failed. */
  #unlessFailed<Result>(awaited: Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#interrupt = reject;
      if (this.#failure) {
        reject(this.#failure.err);
      }
      awaited.then(resolve, reject);
    });
  }

  #guard(work: () => void): void {
    try {
      work();
    } catch (err) {
      this.#fail(err);
    }
  }

  #fail(err: unknown): void {
    this.#failure ??= { err };
    this.#interrupt?.(err);
  }
}

function createParser(contentType: string, maxTextBytes: number): InstanceType<typeof Busboy> {
  try {
    return new Busboy({
      headers: { "content-type": contentType },
      limits: {
        parts: MAX_FORM_PARTS,
        fieldNameSize: 256,
        fieldSize: maxTextBytes,
        headerPairs: 20,
      },
    });
  } catch (err) {
    throw malformed(err instanceof Error ? err.message : String(err));
  }
}

function checkName(name: string | undefined, truncated: boolean): void {
  if (truncated) {
    throw malformed("the name of a part is too long");
  }
  if (!name) {
    throw malformed("a part has no name");
  }
}

function malformed(detail: string): Error {
  return problem("BODY_MALFORMED", `the body is not multipart/form-data: ${detail}`);
}
