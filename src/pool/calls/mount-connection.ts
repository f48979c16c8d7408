/**
 * An HTTP/1.1 connection to a mounted server, with one request on it at a time: a client that
 * reads heads and the framing of bodies, and nothing else.
 *
 *   idle       nothing may come: what comes ends the connection
 *   head       the head of the answer is awaited, behind informational ones that are left out
 *   body       by its length, in chunks, or until the connection ends (RFC 9112, section 6.3)
 *   upgraded   the stream is no longer this connection's
 *
 * What a server sends is hostile. One grammar says what a head is, and framing that two readers
 * could understand in two ways ends the connection, so that no answer is taken for another one.
 *
 * `node:http` has a client, which makes a dozen objects and as many events for each request. For a
 * small answer that was two thirds of what a node did: here such an answer is one write and one
 * read, and is handed on whole.
 */
import { maxHeaderSize } from "node:http";
import type { Duplex } from "node:stream";

/** Status line and headers, in the characters that HTTP has. Linear: no part can match in two ways. */
const HEAD =
  /^HTTP\/1\.[01] [1-9]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*)*$/;
const LENGTH = /^\d{1,15}$/;
const CHUNK_SIZE = /^([\da-f]{1,12})[\t ]*(?:;.*)?$/i;
const CLOSE = /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i;
const KEEP_ALIVE = /(?:^|,)[\t ]*keep-alive[\t ]*(?:,|$)/i;
/** The line before a chunk, with its extensions. */
const MAX_CHUNK_LINE_BYTES = 1_024;
/** Heads of informational answers before the answer itself. */
const MAX_INFORMATIONAL = 32;
const NO_BYTES = Buffer.alloc(0);
const HEAD_END = "\r\n\r\n";

/** The head of an answer. */
export interface AnswerHead {
  readonly status: number;
  /** Names and values in turn, as they came. */
  readonly rawHeaders: readonly string[];
  /** Value of the header `Connection`. */
  readonly connection: string | undefined;
}

/** Hears of the answer to one request. After `onEnd`, `onUpgrade` or `onFault` it hears no more. */
export interface AnswerListener {
  /** `whole`: the body, where all of it has come with the head; `onEnd` follows. */
  onHead(head: AnswerHead, whole: Buffer | undefined): void;
  onData(chunk: Buffer): void;
  onEnd(): void;
  /** The server has switched protocols; `first` is what came behind its head. */
  onUpgrade(head: AnswerHead, stream: Duplex, first: Buffer): void;
  /** More of the request can be written. */
  onDrain(): void;
  /** The connection has ended before the answer had, or what came is no answer. */
  onFault(fault: ConnectionFault): void;
}

/** Why there is no whole answer. */
export interface ConnectionFault {
  /** What came is not HTTP: what is wrong with it. Undefined: the connection has ended. */
  readonly malformed: string | undefined;
}

/** A request to a server. */
interface SentRequest {
  readonly method: string;
  /** Request line and headers, with the empty line behind them. */
  readonly text: string;
  /** The body follows by `write` and `end`. */
  readonly hasBody: boolean;
}

interface MountConnectionOptions {
  /** An answer has ended, and the connection can have the next request. */
  onIdle(connection: MountConnection): void;
  /** It is of no use any more. */
  onClosed(connection: MountConnection): void;
}

/** What of a body is still to come. */
type Framing = "length" | "chunked" | "until-end";

export class MountConnection {
  readonly #stream: Duplex;
  readonly #options: MountConnectionOptions;
  /** By `performance.now`, while it is idle. */
  idleSinceMs = 0;
  #hadRequest = false;
  #isReused = false;
  #listener: AnswerListener | undefined;
  #method = "";
  /** The whole request is written. */
  #isSent = false;
  #isKept = true;
  #isPaused = false;
  #isUpgraded = false;
  #awaitsHead = false;
  /** Informational heads that have come for this request. */
  #informational = 0;
  /** The beginning of a head. */
  #unread: Buffer = NO_BYTES;
  #framing: Framing = "length";
  #leftBytes = 0;
  #chunks: ChunkReader | undefined;

  constructor(stream: Duplex, options: MountConnectionOptions) {
    this.#stream = stream;
    this.#options = options;
    stream.on("data", this.#take);
    stream.on("end", this.#ended);
    stream.on("close", this.#closed);
    stream.on("drain", this.#drained);
    // Its end follows, and says the same.
    stream.on("error", () => {});
  }

  /** Whether it had a request before this one, after which the server may have ended it. */
  get isReused(): boolean {
    return this.#isReused;
  }

  /** Whether it can have no more requests. */
  get isDestroyed(): boolean {
    return this.#stream.destroyed;
  }

  /** Sends a request. `isLast`: the connection has no other one after it. */
  send({ method, text, hasBody }: SentRequest, listener: AnswerListener, isLast = false): void {
    this.#isReused = this.#hadRequest;
    this.#hadRequest = true;
    this.#listener = listener;
    this.#method = method;
    this.#isSent = !hasBody;
    this.#isKept = !isLast;
    this.#awaitsHead = true;
    this.#informational = 0;
    this.#stream.write(text, "latin1");
  }

  /** Sends more of the body. False where it is better to wait for `onDrain`. */
  write(bytes: Buffer | string): boolean {
    return this.#listener === undefined || this.#stream.write(bytes, "latin1");
  }

  /** The body has ended, with these last bytes. */
  end(last?: string): void {
    if (last !== undefined) {
      this.write(last);
    }
    this.#isSent = true;
  }

  /** Reads no more until `resume`. */
  pause(): void {
    this.#isPaused = true;
    this.#stream.pause();
  }

  resume(): void {
    if (this.#isPaused) {
      this.#isPaused = false;
      this.#stream.resume();
    }
  }

  /** Ends the connection; its listener hears no more. */
  destroy(): void {
    this.#listener = undefined;
    this.#stream.destroy();
  }

  /** No answer comes any more. What a WebSocket has sent before is still read. */
  workerEnded(): void {
    if (!this.#isUpgraded) {
      this.#fail(undefined);
    }
  }

  readonly #take = (chunk: Buffer): void => {
    if (this.#listener === undefined) {
      this.destroy();
    } else if (this.#awaitsHead) {
      this.#takeHead(chunk);
    } else {
      this.#takeBody(chunk);
    }
  };

  #takeHead(chunk: Buffer): void {
    let rest = chunk;
    do {
      const before = this.#unread.length;
      const bytes = before === 0 ? rest : Buffer.concat([this.#unread, rest]);
      const end = bytes.indexOf(HEAD_END, Math.max(0, before - HEAD_END.length + 1), "latin1");
      if ((end < 0 ? bytes.length : end) > maxHeaderSize) {
        this.#fail(`its head has more than ${maxHeaderSize} bytes`);
        return;
      }
      if (end < 0) {
        this.#unread = bytes;
        return;
      }
      this.#unread = NO_BYTES;
      const read = readHead(bytes.toString("latin1", 0, end));
      rest = bytes.subarray(end + HEAD_END.length);
      if (typeof read === "string") {
        this.#fail(read);
        return;
      }
      if (read.status === 101) {
        this.#upgrade(read, rest);
        return;
      }
      if (read.status >= 200) {
        this.#begin(read, rest);
        return;
      }
      this.#informational += 1;
      if (this.#informational > MAX_INFORMATIONAL) {
        this.#fail(`it has more than ${MAX_INFORMATIONAL} informational heads`);
        return;
      }
    } while (rest.length > 0);
  }

  #begin(head: ReadHead, rest: Buffer): void {
    const { status, length, isChunked, keepsAlive } = head;
    this.#awaitsHead = false;
    // Servers end a connection on which an application has failed, just after they say so.
    this.#isKept &&= keepsAlive && status < 500;
    const isBodyless = this.#method === "HEAD" || status === 204 || status === 304;
    this.#framing = isBodyless ? "length" : framingOf(head);
    this.#leftBytes = isBodyless ? 0 : (length ?? 0);
    this.#chunks = isChunked && !isBodyless ? new ChunkReader() : undefined;
    const listener = this.#listener;
    if (this.#framing === "length" && rest.length >= this.#leftBytes) {
      const whole = rest.subarray(0, this.#leftBytes);
      listener?.onHead(head, whole);
      this.#finish(rest.length === whole.length);
      return;
    }
    listener?.onHead(head, undefined);
    if (rest.length > 0 && this.#listener !== undefined) {
      this.#takeBody(rest);
    }
  }

  #takeBody(chunk: Buffer): void {
    if (this.#chunks !== undefined) {
      this.#takeChunks(this.#chunks, chunk);
    } else if (this.#framing === "until-end") {
      this.#listener?.onData(chunk);
    } else {
      const own = chunk.length <= this.#leftBytes ? chunk : chunk.subarray(0, this.#leftBytes);
      this.#leftBytes -= own.length;
      this.#listener?.onData(own);
      if (this.#leftBytes === 0) {
        this.#finish(own.length === chunk.length);
      }
    }
  }

  #takeChunks(reader: ChunkReader, chunk: Buffer): void {
    const rest = reader.read(chunk, (data) => this.#listener?.onData(data));
    if (typeof rest === "string") {
      this.#fail(rest);
    } else if (rest !== undefined) {
      this.#finish(rest === 0);
    }
  }

  /** The answer is whole. `isAll`: nothing came behind it. */
  #finish(isAll: boolean): void {
    const listener = this.#listener;
    if (listener === undefined) {
      return;
    }
    this.#listener = undefined;
    this.#chunks = undefined;
    if (isAll && this.#isKept && this.#isSent && !this.#stream.destroyed) {
      this.resume();
      this.#options.onIdle(this);
    } else {
      this.#stream.destroy();
    }
    listener.onEnd();
  }

  #upgrade(head: AnswerHead, first: Buffer): void {
    const stream = this.#stream;
    const listener = this.#listener;
    this.#listener = undefined;
    this.#isUpgraded = true;
    stream.off("data", this.#take).off("end", this.#ended).off("drain", this.#drained);
    stream.pause();
    listener?.onUpgrade(head, stream, first);
  }

  readonly #ended = (): void => {
    if (this.#framing === "until-end" && !this.#awaitsHead) {
      this.#isKept = false;
      this.#finish(true);
    }
    this.#fail(undefined);
  };

  readonly #closed = (): void => {
    this.workerEnded();
    this.#options.onClosed(this);
  };

  readonly #drained = (): void => {
    this.#listener?.onDrain();
  };

  #fail(malformed: string | undefined): void {
    const listener = this.#listener;
    this.destroy();
    listener?.onFault({ malformed });
  }
}

interface ReadHead extends AnswerHead {
  readonly length: number | undefined;
  readonly isChunked: boolean;
  readonly keepsAlive: boolean;
}

function framingOf({ isChunked, length }: ReadHead): Framing {
  return isChunked ? "chunked" : length === undefined ? "until-end" : "length";
}

/** Reads a head without its last line; what is wrong with it, as a text, for what is no head. */
function readHead(text: string): ReadHead | string {
  if (!HEAD.test(text)) {
    return "its head is malformed";
  }
  const rawHeaders: string[] = [];
  let [length, coding, connection]: (string | undefined)[] = [];
  let end = text.indexOf("\r\n");
  for (let at = end; at >= 0; at = end) {
    end = text.indexOf("\r\n", at + 2);
    const colon = text.indexOf(":", at);
    const name = text.slice(at + 2, colon);
    const value = trimmed(text.slice(colon + 1, end < 0 ? undefined : end));
    rawHeaders.push(name, value);
    switch (name.length) {
      case "connection".length:
        if (name.toLowerCase() === "connection") {
          connection = connection === undefined ? value : `${connection}, ${value}`;
        }
        break;
      case "content-length".length:
        if (name.toLowerCase() === "content-length") {
          length = length === undefined ? value : `${length}, ${value}`;
        }
        break;
      case "transfer-encoding".length:
        if (name.toLowerCase() === "transfer-encoding") {
          coding = coding === undefined ? value : `${coding}, ${value}`;
        }
        break;
    }
  }
  if (coding !== undefined && (coding.toLowerCase() !== "chunked" || length !== undefined)) {
    return "its Transfer-Encoding is another than chunked, or beside a Content-Length";
  }
  if (length !== undefined && !LENGTH.test(length)) {
    return "its Content-Length is no number, or several";
  }
  return {
    ...{ status: Number(text.slice(9, 12)), rawHeaders, connection },
    length: length === undefined ? undefined : Number(length),
    isChunked: coding !== undefined,
    keepsAlive:
      !CLOSE.test(connection ?? "") &&
      (text.startsWith("HTTP/1.1") || KEEP_ALIVE.test(connection ?? "")),
  };
}

/** A value without the spaces and tabs around it: other bytes are part of it (RFC 9110, section 5.5). */
function trimmed(value: string): string {
  let [from, to] = [0, value.length];
  while (from < to && isBlank(value.charCodeAt(from))) {
    from += 1;
  }
  while (from < to && isBlank(value.charCodeAt(to - 1))) {
    to -= 1;
  }
  return value.slice(from, to);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/** Reads a body in chunks (RFC 9112, section 7.1). Trailers are left out. */
class ChunkReader {
  /** Of the chunk that is being read, data and then the end of its line. */
  #leftBytes = 0;
  /** The chunk has ended, but for its line. */
  #endsLine = false;
  #isTrailer = false;
  /** The beginning of a line. */
  #line = "";
  /** Of all lines of the trailer. */
  #trailerBytes = 0;

  /**
   * Hands on the data in these bytes. Returns how many bytes are behind the end of the body;
   * undefined while it has not ended; what is wrong, as a text, where it is malformed.
   */
  read(bytes: Buffer, onData: (data: Buffer) => void): number | string | undefined {
    let at = 0;
    while (at < bytes.length) {
      if (this.#leftBytes > 0) {
        const data = bytes.subarray(at, at + this.#leftBytes);
        this.#leftBytes -= data.length;
        at += data.length;
        this.#endsLine = true;
        onData(data);
        continue;
      }
      const end = bytes.indexOf(0x0a, at);
      this.#line += bytes.toString("latin1", at, end < 0 ? bytes.length : end);
      if (this.#line.length > MAX_CHUNK_LINE_BYTES) {
        return "a line of its chunks is too long";
      }
      if (end < 0) {
        return undefined;
      }
      at = end + 1;
      const line = this.#line;
      this.#line = "";
      if (!line.endsWith("\r")) {
        return "its chunks are malformed";
      }
      const fault = this.#takeLine(line.slice(0, -1));
      if (fault !== undefined) {
        return fault === "" ? bytes.length - at : fault;
      }
    }
    return undefined;
  }

  /** What is wrong with a line; the empty text for the last one of the body. */
  #takeLine(line: string): string | undefined {
    if (this.#endsLine) {
      this.#endsLine = false;
      return line === "" ? undefined : "its chunks are longer than they say";
    }
    if (this.#isTrailer) {
      this.#trailerBytes += line.length;
      const isLast = line === "";
      return isLast
        ? ""
        : this.#trailerBytes > maxHeaderSize
          ? "its trailer is too long"
          : undefined;
    }
    const size = CHUNK_SIZE.exec(line)?.[1];
    if (size === undefined) {
      return "its chunks are malformed";
    }
    this.#leftBytes = Number.parseInt(size, 16);
    this.#isTrailer = this.#leftBytes === 0;
    return undefined;
  }
}
