/** A buffered reader: reads a given number of bytes from a stream of chunks of any size. */
import { ArtifactError } from "./artifact-error.ts";

export class ByteReader implements AsyncDisposable {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array();

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** The next `length` bytes, in parts. Throws an `ArtifactError` when the stream ends before. */
  async *stream(length: number): AsyncGenerator<Uint8Array, void, undefined> {
    for (let left = length; left > 0; ) {
      const part = await this.#next(left);
      if (part === undefined) {
        throw new ArtifactError("the artifact is truncated: it ends in the middle");
      }
      left -= part.length;
      yield part;
    }
  }

  /** The next `length` bytes, in one buffer. */
  async take(length: number): Promise<Buffer> {
    const parts: Uint8Array[] = [];
    for await (const part of this.stream(length)) {
      parts.push(part);
    }
    return Buffer.concat(parts);
  }

  /** The next bytes, at most `length`; undefined at the end. */
  async takeUpTo(length: number): Promise<Uint8Array | undefined> {
    return await this.#next(length);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#chunks.return?.();
  }

  async #next(limit: number): Promise<Uint8Array | undefined> {
    while (this.#rest.length === 0) {
      const { value, done } = await this.#chunks.next();
      if (done === true) {
        return undefined;
      }
      this.#rest = value;
    }
    const part = this.#rest.subarray(0, limit);
    this.#rest = this.#rest.subarray(part.length);
    return part;
  }
}
