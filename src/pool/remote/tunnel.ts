/**
 * One connection to a mounted server on another machine, as a stream of which Node's HTTP client
 * asks no more than of a socket. What comes is read when somebody wants it, and what is written is
 * told to be so when it was sent, so a slow side holds up this connection alone.
 */
import { Duplex } from "node:stream";
import type { Turns } from "./turns.ts";

/** Bytes of one frame; the protocol takes 64 KiB. */
const MAX_FRAME_BYTES = 16 * 1024;

/** What goes to the worker: bytes or, once, that no more of them come. */
type TunnelFrame = { readonly data: Uint8Array } | { readonly end: true };

interface Write {
  readonly chunks: readonly Buffer[];
  readonly done: (err?: Error | null) => void;
}

/** Emits `left` when the last frame was taken, or nobody takes any more. */
export class Tunnel extends Duplex {
  /** After this silence it emits `timeout`, as a socket; 0: never. */
  timeout = 0;
  readonly #received: AsyncIterator<Uint8Array>;
  readonly #turns: Turns;
  #isReading = false;
  /** What is wrong with what came. */
  #fault: { readonly error: unknown } | undefined;
  #write: Write | undefined;
  #last: ((err?: Error | null) => void) | undefined;
  #wake: (() => void) | undefined;
  #idle: NodeJS.Timeout | undefined;

  /** @param received what the worker sends. */
  constructor(received: AsyncIterator<Uint8Array>, turns: Turns) {
    super({ allowHalfOpen: false });
    this.#turns = turns;
    this.#received = received;
  }

  /** What is written, in frames, until the connection ends. Throws what is wrong with what came. */
  async *frames(): AsyncGenerator<TunnelFrame, void, undefined> {
    try {
      while (!this.destroyed) {
        const write = this.#write;
        const last = this.#last;
        if (write !== undefined) {
          this.#write = undefined;
          // Small chunks go together.
          yield* this.#turns.inTurn(framesOf(Buffer.concat(write.chunks)));
          write.done();
        } else if (last !== undefined) {
          this.#last = undefined;
          yield { end: true };
          last();
        } else {
          const { promise, resolve } = Promise.withResolvers<void>();
          this.#wake = resolve;
          await promise;
        }
      }
      if (this.#fault !== undefined) {
        throw this.#fault.error;
      }
    } finally {
      this.destroy();
      this.emit("left");
    }
  }

  override _read(): void {
    if (!this.#isReading) {
      this.#isReading = true;
      void this.#receive();
    }
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Write["done"]): void {
    this.#send([chunk], done);
  }

  override _writev(chunks: readonly { readonly chunk: Buffer }[], done: Write["done"]): void {
    this.#send(
      chunks.map(({ chunk }) => chunk),
      done,
    );
  }

  override _final(done: (err?: Error | null) => void): void {
    this.#last = done;
    this.#wake?.();
  }

  override _destroy(err: Error | null, done: (err?: Error | null) => void): void {
    clearTimeout(this.#idle);
    this.#wake?.();
    done(err);
  }

  // The rest of a socket.

  setTimeout(ms: number): this {
    clearTimeout(this.#idle);
    this.timeout = ms;
    this.#idle = ms > 0 ? setTimeout(() => this.emit("timeout"), ms).unref() : undefined;
    return this;
  }

  destroySoon(): void {
    this.end(() => this.destroy());
  }

  setKeepAlive(): this {
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  #send(chunks: readonly Buffer[], done: Write["done"]): void {
    this.#idle?.refresh();
    this.#write = { chunks, done };
    this.#wake?.();
  }

  async #receive(): Promise<void> {
    try {
      for (;;) {
        const { done, value } = await this.#received.next();
        if (done === true) {
          this.push(null);
          return;
        }
        if (value.length > 0) {
          this.#idle?.refresh();
          // It may ask for more at once.
          this.#isReading = false;
          this.push(value);
          return;
        }
      }
    } catch (err) {
      this.#fault = { error: err };
      // Errors of a call have codes that no socket has.
      this.destroy(new Error("the worker broke the connection", { cause: err }));
    }
  }
}

/** Cuts bytes into frames. */
export function* framesOf(bytes: Uint8Array): Generator<{ readonly data: Uint8Array }> {
  for (let at = 0; at < bytes.length; at += MAX_FRAME_BYTES) {
    yield { data: bytes.subarray(at, at + MAX_FRAME_BYTES) };
  }
}
