/** WebSockets frame by frame, over HTTP/1.1 and HTTP/2, right and wrong. */
import { once } from "node:events";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
} from "node:http2";
import { connect } from "node:net";
import type { Duplex } from "node:stream";

/** How a WebSocket is opened: by an upgrade, or by an extended CONNECT (RFC 8441). */
export type Over = "HTTP/1.1" | "HTTP/2";

export interface Opened {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** What its frames pass through. */
  readonly stream: Duplex;
}

interface OpenOptions {
  readonly over?: Over;
  readonly path?: string;
  /** `undefined` takes one of those that a WebSocket has. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** What is sent with the request, before its answer. */
  readonly early?: Buffer;
}

const HANDSHAKE = { "sec-websocket-version": "13" };
const UPGRADE = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
};

/** Opens a WebSocket; the status tells whether it is one: 101 or 200. */
export async function open(
  url: string,
  { over = "HTTP/1.1", path = "/echo", headers = {}, early }: OpenOptions = {},
): Promise<Opened> {
  return over === "HTTP/2"
    ? openHttp2(url, { path, headers, early })
    : openHttp1(url, { path, headers: { ...HANDSHAKE, ...UPGRADE, ...headers }, early });
}

type Asked = Required<Pick<OpenOptions, "path" | "headers">> & Pick<OpenOptions, "early">;

async function openHttp1(url: string, { path, headers, early }: Asked): Promise<Opened> {
  const { port, host } = new URL(url);
  const socket = connect({ port: Number(port), host: "127.0.0.1", noDelay: true });
  socket.on("error", () => {});
  const lines = Object.entries({ host, ...headers }).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}: ${value}\r\n`],
  );
  const head = Buffer.from(`GET ${path} HTTP/1.1\r\n${lines.join("")}\r\n`);
  socket.write(early === undefined ? head : Buffer.concat([head, early]));
  let read = Buffer.alloc(0);
  for (let end = -1; end < 0; end = read.indexOf("\r\n\r\n")) {
    const chunk = socket.read() ?? (await Promise.race([once(socket, "readable"), ended(socket)]));
    if (chunk === "ended") {
      throw new Error(`the connection ended after ${JSON.stringify(String(read))}`);
    }
    read = Buffer.isBuffer(chunk) ? Buffer.concat([read, chunk]) : read;
  }
  const end = read.indexOf("\r\n\r\n");
  socket.unshift(read.subarray(end + 4));
  const [first = "", ...others] = read.toString("latin1", 0, end).split("\r\n");
  const found = others
    .map((line) => line.split(/:\s*/, 2))
    .map(([name = "", value = ""]) => [name.toLowerCase(), value]);
  return {
    status: Number(first.split(" ")[1]),
    headers: Object.fromEntries(found),
    stream: socket,
  };
}

async function openHttp2(url: string, { path, headers, early }: Asked): Promise<Opened> {
  const session = connectHttp2(url);
  session.on("error", () => {});
  await once(session, "remoteSettings");
  const opened = await openIn(session, { path, headers, early });
  opened.stream.once("close", () => session.close());
  return opened;
}

/** Opens a WebSocket in a session that knows the settings of the server. */
export async function openIn(
  session: ClientHttp2Session,
  { path = "/echo", headers = {}, early }: OpenOptions = {},
): Promise<Opened & { readonly stream: ClientHttp2Stream }> {
  const { host, ...others }: Asked["headers"] = { ...HANDSHAKE, ...headers };
  const given = Object.entries(others).filter(([, value]) => value !== undefined);
  const stream = session.request({
    ...{ ":method": "CONNECT", ":protocol": "websocket", ":path": path },
    ...(host !== undefined && { ":authority": host }),
    ...Object.fromEntries(given),
  });
  stream.on("error", () => {});
  if (early !== undefined) {
    stream.write(early);
  }
  const [answer] = await once(stream, "response");
  const { ":status": status = 0, ...said } = answer;
  return { status, headers: said, stream };
}

function ended(stream: Duplex): Promise<"ended"> {
  return new Promise((resolve) => stream.once("close", () => resolve("ended")));
}

export interface Frame {
  /** Default: true. */
  readonly fin?: boolean;
  /** The reserved bits: 4 says that a message is compressed. */
  readonly reserved?: number;
  readonly opcode: number;
  readonly payload?: Buffer | string;
  /** Default: true, as a client has to. */
  readonly masked?: boolean;
  /** What the frame says of its length, if that is not the length. */
  readonly length?: bigint;
  /** In how many bytes it says so. Default: as few as possible. */
  readonly lengthBytes?: 0 | 2 | 8;
}

export const TEXT = 1;
export const BINARY = 2;
export const CLOSE = 8;
export const PING = 9;
export const PONG = 10;

const MASK = Buffer.from([0x37, 0xfa, 0x21, 0x3d]);

/** A frame of RFC 6455, section 5.2. */
export function frame(options: Frame): Buffer {
  const { fin = true, reserved = 0, opcode, payload = "", masked = true } = options;
  const data = Buffer.from(payload);
  const length = options.length ?? BigInt(data.length);
  const lengthBytes = options.lengthBytes ?? (length < 126n ? 0 : length < 65_536n ? 2 : 8);
  const head = Buffer.alloc(2 + lengthBytes);
  head[0] = (fin ? 0x80 : 0) | (reserved << 4) | opcode;
  const short = lengthBytes === 0 ? Number(length) : lengthBytes === 2 ? 126 : 127;
  head[1] = (masked ? 0x80 : 0) | short;
  if (lengthBytes === 2) {
    head.writeUInt16BE(Number(length), 2);
  } else if (lengthBytes === 8) {
    head.writeBigUInt64BE(length, 2);
  }
  return Buffer.concat([
    head,
    ...(masked ? [MASK, data.map((byte, at) => byte ^ (MASK[at % 4] ?? 0))] : [data]),
  ]);
}

export function text(payload: string): Buffer {
  return frame({ opcode: TEXT, payload });
}

/** A close frame with a code and a reason. */
export function close(code: number, reason: Buffer | string = ""): Buffer {
  const head = Buffer.alloc(2);
  head.writeUInt16BE(code);
  return frame({ opcode: CLOSE, payload: Buffer.concat([head, Buffer.from(reason)]) });
}

/** A frame as it was read. */
export interface Received {
  readonly opcode: number;
  /** `fin` and the reserved bits. */
  readonly flags: number;
  /** As it came, masked or not. */
  readonly payload: Buffer;
}

/** Whether a frame ends a message. */
export function endsMessage({ opcode, flags }: Received): boolean {
  return opcode <= BINARY && flags >= 8;
}

/** The frames that come, until the end. */
export async function* frames(
  stream: AsyncIterable<Buffer>,
): AsyncGenerator<Received, void, undefined> {
  let read = Buffer.alloc(0);
  for await (const chunk of endsQuietly(stream)) {
    read = Buffer.concat([read, chunk]);
    for (let taken = takeFrame(read); taken !== undefined; taken = takeFrame(read)) {
      yield taken;
      read = read.subarray(taken.bytes);
    }
  }
}

/** A connection that is reset has ended. */
async function* endsQuietly(
  stream: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer, void, undefined> {
  try {
    for await (const chunk of stream) {
      yield chunk;
    }
  } catch {
    return;
  }
}

function takeFrame(read: Buffer): (Received & { readonly bytes: number }) | undefined {
  if (read.length < 2) {
    return undefined;
  }
  const [first = 0, second = 0] = read;
  const short = second & 0x7f;
  const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
  const maskBytes = second >= 0x80 ? 4 : 0;
  const from = 2 + lengthBytes + maskBytes;
  if (read.length < from) {
    return undefined;
  }
  const length =
    lengthBytes === 0
      ? short
      : lengthBytes === 2
        ? read.readUInt16BE(2)
        : Number(read.readBigUInt64BE(2));
  const bytes = from + length;
  return read.length < bytes
    ? undefined
    : { opcode: first & 0x0f, flags: first >> 4, payload: read.subarray(from, bytes), bytes };
}
