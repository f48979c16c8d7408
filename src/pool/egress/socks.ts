/**
 * The SOCKS5 side of the egress proxy (RFC 1928): no authentication, CONNECT
 * only, names resolved by the node.
 */
import { isIPv6, type Socket } from "node:net";
import { type Asked, EgressRefusedError } from "./refusals.ts";

/** The version of the protocol, which is the first byte of each message. */
export const SOCKS_VERSION = 5;
const NO_AUTHENTICATION = 0;
const NO_METHOD = 0xff;
const CONNECT = 1;
const IPV4 = 1;
const NAME = 3;
const IPV6 = 4;

/** Codes of replies (RFC 1928, section 6). */
const REPLY = { ok: 0, refused: 2, unreachable: 4, command: 7, addressType: 8 } as const;

/** The client sent what the protocol does not have, or went away. */
class SocksFault extends Error {
  readonly reply: number | undefined;

  constructor(message: string, reply?: number) {
    super(message);
    this.reply = reply;
  }
}

/**
 * Speaks with a client until its connection is open, and returns that. Returns
 * undefined without one; the client has its answer then, and is closed.
 */
export async function serveSocks(
  socket: Socket,
  open: (asked: Asked) => Promise<Socket>,
): Promise<Socket | undefined> {
  try {
    const asked = await readRequest(socket);
    const upstream = await open(asked);
    socket.write(reply(REPLY.ok));
    return upstream;
  } catch (err) {
    const code = codeOf(err);
    if (code !== undefined) {
      socket.write(reply(code));
    }
    socket.destroySoon();
    return undefined;
  }
}

function codeOf(err: unknown): number | undefined {
  if (err instanceof SocksFault) {
    return err.reply;
  }
  return err instanceof EgressRefusedError ? REPLY.refused : REPLY.unreachable;
}

async function readRequest(socket: Socket): Promise<Asked> {
  using reader = new HandshakeReader(socket);
  const [version, count = 0] = await reader.read(2);
  if (version !== SOCKS_VERSION || count === 0) {
    throw new SocksFault("no greeting");
  }
  const methods = await reader.read(count);
  if (!methods.includes(NO_AUTHENTICATION)) {
    socket.write(Uint8Array.of(SOCKS_VERSION, NO_METHOD));
    throw new SocksFault("no method in common");
  }
  socket.write(Uint8Array.of(SOCKS_VERSION, NO_AUTHENTICATION));
  const [again, command, reserved, type] = await reader.read(4);
  if (again !== SOCKS_VERSION || reserved !== 0) {
    throw new SocksFault("no request");
  }
  if (command !== CONNECT) {
    throw new SocksFault("only CONNECT", REPLY.command);
  }
  const host = await readHost(reader, type);
  const port = (await reader.read(2)).readUInt16BE(0);
  return { host, port };
}

async function readHost(reader: HandshakeReader, type: number | undefined): Promise<string> {
  switch (type) {
    case IPV4:
      return (await reader.read(4)).join(".");
    case IPV6: {
      const groups = (await reader.read(16)).toString("hex").match(/.{4}/g) ?? [];
      return groups.join(":");
    }
    case NAME: {
      const [length = 0] = await reader.read(1);
      const name = length === 0 ? "" : (await reader.read(length)).toString("latin1");
      // Some clients write an address as a name, in brackets.
      const [, bare = name] = /^\[(.*)\]$/.exec(name) ?? [];
      return isIPv6(bare) ? bare : name;
    }
    default:
      throw new SocksFault("no address type", REPLY.addressType);
  }
}

/**
 * Reads a handshake byte-exactly. It listens once for all of it: each new listener
 * of `readable` is called again for bytes that are there and too few, which would
 * keep the event loop busy.
 */
class HandshakeReader implements Disposable {
  readonly #socket: Socket;
  #wake = Promise.withResolvers<void>();

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("readable", this.#onChange).on("end", this.#onChange).on("close", this.#onChange);
  }

  /** Reads this number of bytes, at least one. */
  async read(length: number): Promise<Buffer> {
    for (;;) {
      const bytes: Buffer | null = this.#socket.read(length);
      if (bytes?.length === length) {
        return bytes;
      }
      if (bytes !== null || this.#socket.readableEnded || this.#socket.destroyed) {
        throw new SocksFault("the client went away");
      }
      await this.#wake.promise;
    }
  }

  [Symbol.dispose](): void {
    for (const event of ["readable", "end", "close"]) {
      this.#socket.off(event, this.#onChange);
    }
  }

  readonly #onChange = (): void => {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  };
}

function reply(code: number): Uint8Array {
  // The bound address, which clients of CONNECT do not use, is left empty.
  return Uint8Array.of(SOCKS_VERSION, code, 0, IPV4, 0, 0, 0, 0, 0, 0);
}
