/** What the host of a worker uses of `ws`. */
declare module "ws" {
  import { EventEmitter } from "node:events";
  import type { IncomingMessage } from "node:http";
  import type { Duplex } from "node:stream";

  export class WebSocket extends EventEmitter {
    readonly isPaused: boolean;
    pause(): void;
    resume(): void;
    ping(): void;
    send(message: string | ArrayBuffer | Uint8Array, sent: (err?: Error | null) => void): void;
    close(code: number, reason: string): void;
    terminate(): void;
  }

  interface ServerOptions {
    readonly noServer: true;
    readonly clientTracking: boolean;
    readonly maxPayload: number;
    /** In milliseconds. */
    readonly closeTimeout: number;
  }

  export class WebSocketServer {
    constructor(options: ServerOptions);
    handleUpgrade(
      req: IncomingMessage,
      connection: Duplex,
      head: Buffer,
      opened: (socket: WebSocket) => void,
    ): void;
  }
}
