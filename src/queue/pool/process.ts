/**
 * A worker's operating-system process and the channel to it: started with the
 * permission model, an environment of its own and a scratch folder. Whatever
 * breaks the protocol ends it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { extname } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { encodeFrame, FrameReader } from "../../sdk/frames.ts";
import { CHANNEL_DESCRIPTOR, type NodeMessage, type WorkerMessage } from "../../sdk/protocol.ts";
import { readWorkerMessage } from "./check.ts";
import { forEachLine } from "./lines.ts";

const HOST = fileURLToPath(
  new URL(`../../sdk/host/main${extname(import.meta.url)}`, import.meta.url),
);

export interface ServiceProcessOptions {
  /** Flags of Node's permission model. */
  readonly permissions: readonly string[];
  /** A folder of its own that it may write. */
  readonly scratchFolder: string;
  /** Its environment besides what every worker has. */
  readonly env: { readonly [name: string]: string };
  /** Largest message that is taken from it. */
  readonly maxMessageBytes: number;
  onMessage(message: WorkerMessage): void;
  /** A line that the service wrote to stdout or stderr. */
  onOutput(line: string): void;
}

export class ServiceProcess {
  readonly #process: ChildProcess;
  readonly #channel: Socket;
  readonly #exited = Promise.withResolvers<string>();
  #endedFor: string | undefined;

  constructor(options: ServiceProcessOptions) {
    const { permissions, scratchFolder, env } = options;
    this.#process = spawn(
      process.execPath,
      [...permissions, "--disable-warning=ExperimentalWarning", HOST],
      {
        env: { ...env, TMPDIR: scratchFolder, LANG: "C.UTF-8" },
        stdio: ["ignore", "pipe", "pipe", "pipe"],
      },
    );
    forEachLine(this.#process.stdout, options.onOutput);
    forEachLine(this.#process.stderr, options.onOutput);
    this.#process.on("error", (err) => this.#end(err.message));
    this.#process.once("exit", (code, signal) =>
      this.#end(signal ? `it was killed by ${signal}` : `it exited with code ${code}`),
    );
    this.#channel = this.#process.stdio[CHANNEL_DESCRIPTOR] as Readable & Socket;
    const reader = new FrameReader({
      maxBytes: options.maxMessageBytes,
      onMessage: (received) => {
        const message = readWorkerMessage(received);
        if (message) {
          options.onMessage(message);
        } else {
          this.kill("it sent a message that the protocol does not have");
        }
      },
      onBroken: (reason) => this.kill(reason),
    });
    this.#channel.on("data", (chunk: Buffer) => reader.push(chunk));
    // Its process is ending: the exit tells why.
    this.#channel.on("error", () => {});
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** True from the moment in which its end is known or decided. */
  get ended(): boolean {
    return this.#endedFor !== undefined;
  }

  /** Resolves, with the reason, when the process has ended. */
  get exited(): Promise<string> {
    return this.#exited.promise;
  }

  send(message: NodeMessage): void {
    if (this.#channel.writable) {
      this.#channel.write(encodeFrame(message));
    }
  }

  kill(message: string): void {
    this.#endedFor ??= message;
    this.#process.kill("SIGKILL");
  }

  #end(reason: string): void {
    this.#endedFor ??= reason;
    this.#exited.resolve(this.#endedFor);
  }
}
