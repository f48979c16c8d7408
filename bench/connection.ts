/** A minimal HTTP client for the load generator. */
import { Buffer } from "node:buffer";
import { connect, type Socket } from "node:net";

export interface Answer {
  readonly status: number;
  readonly body: string;
}

const LENGTH = /^content-length: *(\d+)/im;

/**
 * The read buffer; responses are far shorter. All connections share it, because
 * it is consumed at once.
 */
const received = Buffer.allocUnsafe(65_536);

/**
 * Sends requests one after the other over one keep-alive connection. Responses
 * are parsed only as far as needed to find their end: they must have a
 * `content-length`.
 */
export class Connection {
  readonly #socket: Socket;
  #buffer = "";
  #waiting: PromiseWithResolvers<Answer> | undefined;

  static open(port: number): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const connection = new Connection(port);
      connection.#socket.once("error", reject);
      connection.#socket.once("connect", () => resolve(connection));
    });
  }

  private constructor(port: number) {
    const socket = connect({
      port,
      host: "127.0.0.1",
      noDelay: true,
      // Bypasses the stream, whose buffers and events would cost more than the
      // response.
      onread: {
        buffer: received,
        callback: (length) => {
          this.#buffer += received.toString("latin1", 0, length);
          this.#read();
          return true;
        },
      },
    });
    this.#socket = socket;
    const lost = (err?: Error): void =>
      this.#waiting?.reject(err ?? new Error("the server closed the connection"));
    socket.on("error", lost);
    socket.on("close", () => lost());
  }

  request(text: string): Promise<Answer> {
    const waiting = Promise.withResolvers<Answer>();
    this.#waiting = waiting;
    this.#socket.write(text, "latin1");
    return waiting.promise;
  }

  end(): void {
    this.#waiting = undefined;
    this.#socket.destroy();
  }

  #read(): void {
    const headEnd = this.#buffer.indexOf("\r\n\r\n");
    if (headEnd < 0) {
      return;
    }
    const length = LENGTH.exec(this.#buffer)?.[1] ?? 0;
    const end = headEnd + 4 + Number(length);
    if (this.#buffer.length < end) {
      return;
    }
    const status = Number(this.#buffer.slice("HTTP/1.1 ".length, "HTTP/1.1 200".length));
    const body = this.#buffer.slice(headEnd + 4, end);
    this.#buffer = this.#buffer.slice(end);
    this.#waiting?.resolve({ status, body });
  }
}
