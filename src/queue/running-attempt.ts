import type { ServiceLine } from "../log/log.ts";
import type { Execution, ExecutionEnd, ExecutionListener } from "../pool/execution.ts";
import type { Slot } from "../pool/pool.ts";
import type { EndpointManifest } from "../protocol/manifest.ts";
import type { Payload } from "../protocol/messages.ts";
import type { TaskEventBody } from "../tasks/event.ts";
import type { Task } from "../tasks/task.ts";
import type { OpenSpan } from "../tracing/tracing.ts";
import { EventRateLimit } from "./event-rate.ts";

/** What is known of an attempt while it runs. Not its arguments, which may be large and are the worker's now. */
export interface BegunAttempt {
  readonly task: Task;
  readonly leaseId: string;
  readonly endpoint: EndpointManifest;
  readonly slot: Slot;
  /** Undefined where nothing is traced. */
  readonly span: OpenSpan | undefined;
}

/** Who is told what becomes of attempts. */
export interface AttemptListener {
  ended(running: RunningAttempt, end: ExecutionEnd): void;
  /** The function logged a line. */
  logged(running: RunningAttempt, line: ServiceLine): void;
  /** Something to be kept with the task, and not too often. */
  told(running: RunningAttempt, body: TaskEventBody): void;
}

/** An attempt that runs here. One object for all that is told of it, because there are as many as tasks. */
export class RunningAttempt implements ExecutionListener {
  readonly begun: BegunAttempt;
  readonly startedMs = performance.now();
  readonly #listener: AttemptListener;
  #execution: Execution | undefined;
  /** Few functions tell anything. */
  #pace: EventRateLimit | undefined;

  constructor(begun: BegunAttempt, listener: AttemptListener) {
    this.begun = begun;
    this.#listener = listener;
  }

  /** Runs it in its slot. */
  begin(payload: Payload): void {
    const { task, slot, span } = this.begun;
    const { taskId, attempt } = task;
    const { trace } = span ?? task;
    this.#execution = slot.execute({ arguments: payload, taskId, attempt, trace }, this);
  }

  cancel(): void {
    this.#execution?.abort("cancelled");
  }

  onEnd(end: ExecutionEnd): void {
    this.#listener.ended(this, end);
  }

  onProgress(fraction: number, message: string): void {
    this.#pace ??= new EventRateLimit();
    if (this.#pace.admitProgress(fraction, performance.now())) {
      this.#listener.told(this, { kind: "progress", fraction, message });
    }
  }

  onLog(line: ServiceLine): void {
    this.#listener.logged(this, line);
    this.#pace ??= new EventRateLimit();
    if (this.#pace.admitLog()) {
      this.#listener.told(this, { kind: "log", ...line });
    }
  }
}
