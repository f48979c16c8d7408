/**
 * One Work stream: messages both ways, and a heartbeat at each interval, of which each has to be
 * answered. A stream on which a heartbeat is not answered is broken, whatever the connection says.
 */
import type { WorkResponse } from "../../gen/tessera/v1/worker_pb.js";
import type { MachineMeter } from "../pool/machine-load.ts";
import type { WorkerUsage } from "../pool/usage.ts";
import { durationFromMs } from "../time/messages.ts";
import type { SessionAccess } from "./files.ts";
import type { Request } from "./messages.ts";
import { RequestQueue } from "./request-queue.ts";

/** How long an answer may take, as a part of the interval of heartbeats. */
const ANSWER_SHARE = 0.6;

interface WorkStreamOptions extends SessionAccess {
  readonly heartbeatMs: number;
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
  usage(): WorkerUsage;
  /** Of this machine. */
  readonly load: MachineMeter["look"];
  /** The node has answered the first message. */
  onWelcome(): void;
  onMessage(response: WorkResponse): void;
  /** The heartbeat that was sent at this time was answered. */
  onAnswer(sentAtMs: number): void;
}

export class WorkStream {
  readonly #options: WorkStreamOptions;
  readonly #queue = new RequestQueue<Request>();
  readonly #broken = new AbortController();
  #sequence = 0n;
  /** When heartbeats that were not answered were sent. */
  readonly #unanswered = new Map<bigint, number>();
  #heartbeats: NodeJS.Timeout | undefined;
  #silence: NodeJS.Timeout | undefined;

  constructor(options: WorkStreamOptions) {
    this.#options = options;
  }

  send(request: Request): void {
    this.#queue.send(request);
  }

  /** Nothing more is sent, and the node ends the stream. */
  end(): void {
    this.#queue.end();
  }

  /** Ends the stream at once. */
  break(reason: string): void {
    this.#broken.abort(new Error(reason));
  }

  /** Reads until the stream ends. Rejects with the reason when it broke. */
  async run(): Promise<void> {
    const { client, session, heartbeatMs, onMessage, onWelcome } = this.#options;
    this.#queue.send({ message: { case: "hello", value: { session } } });
    this.#beat();
    this.#heartbeats = setInterval(() => this.#beat(), heartbeatMs);
    try {
      const { signal } = this.#broken;
      for await (const response of client.work(this.#queue, { signal })) {
        switch (response.message.case) {
          case "welcome":
            onWelcome();
            break;
          case "heartbeatAck":
            this.#answered(response.message.value.sequence);
            break;
          default:
            onMessage(response);
        }
      }
    } finally {
      clearInterval(this.#heartbeats);
      clearTimeout(this.#silence);
      this.#queue.end();
    }
  }

  #beat(): void {
    const { heartbeatMs, now, usage } = this.#options;
    const { memoryBytes, cpuMs } = usage();
    const load = this.#options.load();
    this.#sequence += 1n;
    this.#unanswered.set(this.#sequence, now());
    this.#queue.send({
      message: {
        case: "heartbeat",
        value: {
          sequence: this.#sequence,
          memoryBytes: BigInt(memoryBytes),
          cpuTime: durationFromMs(cpuMs),
          load: {
            ...load,
            memoryBytes: BigInt(load.memoryBytes),
            usedMemoryBytes: BigInt(load.usedMemoryBytes),
          },
        },
      },
    });
    this.#silence ??= setTimeout(() => this.#silent(), heartbeatMs * ANSWER_SHARE);
  }

  /** An answer may be there already, where this process had no time to read it. */
  #silent(): void {
    const due = this.#sequence;
    setImmediate(() => {
      if (this.#unanswered.has(due)) {
        this.break("the platform does not answer");
      }
    });
  }

  #answered(sequence: bigint): void {
    const sentAtMs = this.#unanswered.get(sequence);
    if (sentAtMs === undefined) {
      return;
    }
    for (const before of this.#unanswered.keys()) {
      if (before <= sequence) {
        this.#unanswered.delete(before);
      }
    }
    if (this.#unanswered.size === 0) {
      clearTimeout(this.#silence);
      this.#silence = undefined;
    }
    this.#options.onAnswer(sentAtMs);
  }
}
