/** One running attempt: the object through which a worker reports to `attempts.ts`. */
import type { ServiceLine } from "../log/log.ts";
import type {
  EndRecord,
  Execution,
  ExecutionEnd,
  ExecutionListener,
} from "../pool/calls/execution.ts";
import type { Slot } from "../pool/pool.ts";
import type { ResponseHead } from "../protocol/heads.ts";
import type { EndpointManifest } from "../protocol/manifest.ts";
import type { CallFailure, Payload } from "../protocol/messages.ts";
import type { LineRange, TaskEventBody } from "../tasks/event.ts";
import type { Task } from "../tasks/task.ts";
import type { OpenSpan } from "../tracing/tracing.ts";
import { EventRateLimit } from "./events/rate-limit.ts";
import type { AttemptEvents } from "./events/writer.ts";
import type { AttemptPieces, PieceSource } from "./pieces/attempt-pieces.ts";

/** The facts of a running attempt. It holds no arguments: they may be large, and the worker has them. */
interface BegunAttempt {
  readonly task: Task;
  readonly leaseId: string;
  readonly endpoint: EndpointManifest;
  readonly slot: Slot;
  /** Undefined where nothing is traced. */
  readonly span: OpenSpan | undefined;
}

/** Receives what happens to attempts. */
export interface AttemptListener {
  /** Resolves with what became of the end. */
  ended(running: RunningAttempt, end: ExecutionEnd): Promise<EndRecord>;
  /** The function logged a line, which goes to the node's log. */
  logged(running: RunningAttempt, line: ServiceLine): void;
  /** An event to store with the task, within the rate limit, and the lines that it displaces. */
  reported(running: RunningAttempt, body: TaskEventBody, displaces?: LineRange): void;
}

/** A running attempt. One object takes all its reports, because there are as many as tasks. */
export class RunningAttempt implements ExecutionListener, PieceSource {
  readonly begun: BegunAttempt;
  readonly startedMs = performance.now();
  /** Set before it begins, for an endpoint that streams. */
  pieces: AttemptPieces | undefined;
  /** Made by the listener when it first reports an event. */
  events: AttemptEvents | undefined;
  readonly #listener: AttemptListener;
  #execution: Execution | undefined;
  /** Made on first use: few functions report anything. */
  #rateLimit: EventRateLimit | undefined;
  /** Why no more of its pieces are taken. */
  #refused: CallFailure | undefined;

  constructor(begun: BegunAttempt, listener: AttemptListener) {
    this.begun = begun;
    this.#listener = listener;
  }

  /** Starts the attempt in its slot. */
  begin(payload: Payload): void {
    const { task, slot, span } = this.begun;
    const { taskId, attempt } = task;
    const { trace } = span ?? task;
    this.#execution = slot.execute({ arguments: payload, taskId, attempt, trace }, this);
  }

  cancel(): void {
    this.#execution?.abort("cancelled");
  }

  /** Goes on with an attempt that another node began, and which its worker still runs. */
  adopt(adopt: (listener: ExecutionListener) => Execution): void {
    this.#execution = adopt(this);
  }

  onEnd(end: ExecutionEnd): Promise<EndRecord> {
    const failure = end.kind === "aborted" ? this.#refused : undefined;
    return this.#listener.ended(this, failure ? { kind: "failure", failure } : end);
  }

  onChunk(piece: string | Uint8Array): void {
    this.pieces?.add(piece);
  }

  onResponse(response: ResponseHead): void {
    if (this.pieces) {
      this.pieces.response = response;
    }
  }

  stored(count: number): void {
    this.#execution?.more(count);
  }

  refuse(failure: CallFailure | undefined): void {
    this.#refused = failure;
    this.cancel();
  }

  onProgress(fraction: number, message: string): void {
    this.#rateLimit ??= new EventRateLimit();
    if (this.#rateLimit.admitProgress(fraction, performance.now())) {
      this.#listener.reported(this, { kind: "progress", fraction, message });
    }
  }

  onLog(line: ServiceLine): void {
    this.#listener.logged(this, line);
    this.#rateLimit ??= new EventRateLimit();
    const { skipped = 0, ...said } = line;
    const { line: number, displaces } = this.#rateLimit.nextLine(skipped);
    this.#listener.reported(this, { kind: "log", line: number, ...said }, displaces);
  }
}
