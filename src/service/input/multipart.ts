/**
 * A streaming parser for forms: multipart/form-data (RFC 7578), and
 * application/x-www-form-urlencoded, whose values are texts. Files are passed on as
 * streams in the order of the body, with back-pressure: the body is read no faster
 * than they are.
 */
import { basename } from "node:path";
import type { Readable } from "node:stream";
import { Busboy } from "@fastify/busboy";
import { giveBack } from "../../collections/bytes.ts";
import { problem } from "../../errors.ts";
import type { FileFacts } from "../../protocol/messages.ts";
import { isJsonType } from "./media-type.ts";

/** Parts of a form; its size is bounded where it is read. */
const MAX_FORM_PARTS = 2_000;

/**
 * Chunks of a body that are given back at its end, together; those of a longer one, whose files go
 * to disk, are left to the collector, so that what has passed is not held.
 */
const MAX_GIVEN_BACK_BYTES = 1024 * 1024;

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
export async function readForm(
  contentType: string,
  chunks: AsyncIterable<Uint8Array>,
  { taker, maxTextBytes }: { readonly taker: PartsTaker; readonly maxTextBytes: number },
): Promise<void> {
  await new FormReading(contentType, taker, maxTextBytes).read(chunks);
}

class FormReading {
  readonly #parser: InstanceType<typeof Busboy>;
  readonly #taker: PartsTaker;
  readonly #files: Promise<void>[] = [];
  readonly #open = new Set<Readable>();
  /** Counted here: of names and values in one line, the parser drops what is beyond its limit in silence. */
  #texts = 0;
  /** The chunks, as long as they are few: files and texts are parts of them until they are taken. */
  #passed: Uint8Array[] | undefined = [];
  #passedBytes = 0;
  #failure: { readonly err: unknown } | undefined;
  /** Rejects the promise that the reader awaits. */
  #interrupt: ((err: unknown) => void) | undefined;

  constructor(contentType: string, taker: PartsTaker, maxTextBytes: number) {
    this.#taker = taker;
    const parser = createParser(contentType, maxTextBytes);
    this.#parser = parser;
    const tooMany = () => this.#fail(malformed(`it has more than ${MAX_FORM_PARTS} parts`));
    parser.on("field", (name, text, nameTruncated, textTruncated) => {
      if (++this.#texts > MAX_FORM_PARTS) {
        tooMany();
        return;
      }
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
    parser.on("partsLimit", tooMany);
    parser.on("error", (err) =>
      this.#fail(malformed(err instanceof Error ? err.message : String(err))),
    );
  }

  async read(chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const finished = new Promise<void>((resolve) => this.#parser.once("finish", () => resolve()));
    let isEmpty = true;
    try {
      for await (const chunk of chunks) {
        isEmpty &&= chunk.length === 0;
        this.#note(chunk);
        await this.#write(chunk);
      }
      if (isEmpty) {
        // No body is no arguments, whatever it is called.
        return;
      }
      this.#parser.end();
      await this.#unlessFailed(finished);
      await this.#unlessFailed(Promise.all(this.#files));
      this.#passed?.forEach(giveBack);
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

  #note(chunk: Uint8Array): void {
    this.#passedBytes += chunk.length;
    if (this.#passedBytes > MAX_GIVEN_BACK_BYTES) {
      this.#passed = undefined;
    }
    this.#passed?.push(chunk);
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
      // A part without a name for its file is a text, unless its type says otherwise.
      isPartAFile: (_name, contentType, filename) =>
        filename !== undefined || !isTextType(contentType ?? ""),
      limits: {
        parts: MAX_FORM_PARTS,
        fields: MAX_FORM_PARTS + 1,
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
  if (name?.startsWith("{")) {
    const message =
      "the body is JSON, and its content type says that it is a form: send application/json";
    throw problem("BODY_MALFORMED", message);
  }
  if (truncated) {
    throw malformed("the name of a part is too long");
  }
  if (!name) {
    throw malformed("a part has no name");
  }
}

function isTextType(mediaType: string): boolean {
  return mediaType.startsWith("text/") || isJsonType(mediaType);
}

function malformed(detail: string): Error {
  return problem("BODY_MALFORMED", `the body is not the form that its type says: ${detail}`);
}
