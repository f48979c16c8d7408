/**
 * Executes calls in a worker: reads and validates the arguments, runs the function,
 * validates and writes the result. Any error becomes the failure of that one call.
 */

import { SlotMap } from "../collections/slots.ts";
import { TokenBucket } from "../collections/token-bucket.ts";
import { type AbortReason, type Call, type Chunk, packPayload } from "../protocol/messages.ts";
import type { Executable, ReadyService } from "../sdk/describe.ts";
import { Batch, type BatchedCall } from "./batch.ts";
import { CallContext, type CallOutlets } from "./call-context.ts";
import { CallFiles } from "./call-files.ts";
import type { Channel } from "./channel.ts";
import type { Meters } from "./custom-metrics.ts";
import { LOG_BUDGET } from "./log.ts";
import type { Outbox } from "./outbox.ts";
import { withOutputOf } from "./output.ts";
import type { ResultOptions } from "./payload.ts";
import { headOf } from "./response.ts";
import { type CallOutcome, type EndingCall, failureOf, readChecked, writeResult } from "./run.ts";
import { type PieceOptions, SendWindow, streamPieces } from "./stream.ts";

/** A call under way. */
interface Running {
  readonly ctx: CallContext;
  /** Present when its result is streamed. */
  readonly window?: SendWindow;
  /** Present when its function takes several calls at once. */
  readonly batched?: { readonly batch: Batch; readonly call: BatchedCall };
}

interface ExecutorOptions {
  readonly channel: Channel;
  readonly outbox: Outbox;
  readonly meters: Meters;
  /** Limit of a result that is a file; a larger one fails the call. */
  readonly maxFileBytes: number;
  readonly maxResultBytes: number;
  /** The worker's own folder, which contains the folders of its calls. */
  readonly scratchFolder: string;
}

export class Executor {
  readonly #service: ReadyService;
  readonly #outlets: CallOutlets;
  readonly #outbox: Outbox;
  readonly #options: ExecutorOptions;
  /** Endpoints whose string results are sent to callers as text. */
  #textEndpoints: ReadonlySet<string> = new Set();
  readonly #running = new SlotMap<number, Running>();
  #idle: (() => void) | undefined;

  constructor(service: ReadyService, options: ExecutorOptions) {
    this.#service = service;
    const { channel, meters } = options;
    this.#outlets = { channel, meters, logBudget: new TokenBucket(LOG_BUDGET) };
    this.#outbox = options.outbox;
    this.#options = options;
  }

  setTextEndpoints(endpoints: readonly string[]): void {
    this.#textEndpoints = new Set(endpoints);
  }

  start(call: Call): void {
    const executable = this.#executable(call);
    if (executable?.manifest.batch) {
      this.#startBatch(executable, [call]);
    } else if (executable) {
      const ctx = new CallContext(this.#outlets, call, executable.manifest.kind);
      const running = executable.result.stream
        ? { ctx, window: new SendWindow(ctx.signal) }
        : { ctx };
      this.#running.set(call.id, running);
      void this.#execute(executable, call, running);
    }
  }

  /** Starts calls of one endpoint that its function takes together. */
  startBatch(calls: readonly Call[]): void {
    const found = calls.map((call) => this.#executable(call));
    const [executable] = found;
    if (executable) {
      this.#startBatch(executable, calls);
    }
  }

  abort(id: number, reason: AbortReason): void {
    const running = this.#running.get(id);
    running?.ctx.abort(reason);
    running?.batched?.batch.aborted(running.batched.call, reason);
  }

  /** This many chunks of a call were consumed. */
  more(id: number, count: number): void {
    this.#running.get(id)?.window?.consumed(count);
  }

  /** Calls `idle` once no call is under way. */
  whenIdle(idle: () => void): void {
    if (this.#running.size === 0) {
      idle();
    } else {
      this.#idle = idle;
    }
  }

  #executable(call: Call): Executable | undefined {
    const executable = this.#service.endpoints.get(call.endpoint);
    if (executable === undefined) {
      const message = `service ${this.#service.manifest.name} has no endpoint ${call.endpoint}`;
      const failure = { code: "not_found", reason: "ENDPOINT_NOT_FOUND", message } as const;
      this.#outbox.add({ id: call.id, failure });
    }
    return executable;
  }

  #startBatch(executable: Executable, calls: readonly Call[]): void {
    const batched = calls.map((call): BatchedCall => {
      const ctx = new CallContext(this.#outlets, call, executable.manifest.kind);
      const options = this.#resultOptions(call);
      return { call, ctx, options, end: (outcome) => this.#end({ call, ctx, options }, outcome) };
    });
    const batch = new Batch(executable, batched);
    for (const one of batched) {
      this.#running.set(one.call.id, { ctx: one.ctx, batched: { batch, call: one } });
    }
    void batch.run();
  }

  async #execute(executable: Executable, call: Call, running: Running): Promise<void> {
    const { ctx } = running;
    let outcome: CallOutcome;
    const options = this.#resultOptions(call);
    try {
      const stream = running.window && this.#streaming(executable, { call, ctx }, running.window);
      outcome = await run(executable, { call, ctx, options }, stream);
    } catch (err) {
      outcome = { failure: failureOf(err, call, ctx) };
    }
    this.#end({ call, ctx, options }, outcome);
  }

  #resultOptions(call: Call): ResultOptions {
    const { maxFileBytes, maxResultBytes, scratchFolder } = this.#options;
    const callFiles = new CallFiles(scratchFolder, call.id);
    return {
      callFiles,
      maxFileBytes,
      maxResultBytes,
      asText: this.#textEndpoints.has(call.endpoint),
    };
  }

  /** Sends the end of a call; only the first one counts. */
  #end({ call, ctx, options }: EndingCall, outcome: CallOutcome): void {
    if (this.#running.take(call.id) === undefined) {
      return;
    }
    options.callFiles.clear();
    ctx.end();
    this.#outbox.add(
      "failure" in outcome
        ? { id: call.id, failure: outcome.failure }
        : { id: call.id, result: packPayload(outcome.result) },
    );
    if (this.#running.size === 0) {
      this.#idle?.();
    }
  }

  #streaming(
    { result }: Executable,
    { call: { id, endpoint }, ctx }: Pick<EndingCall, "call" | "ctx">,
    window: SendWindow,
  ): PieceOptions {
    const send = (chunk: Omit<Chunk, "id">, signal: AbortSignal) =>
      this.#outbox.addChunk({ id, ...chunk }, signal);
    const head = () => headOf(endpoint, ctx.said);
    return { endpoint, result, window, head, send };
  }
}

async function run(
  executable: Executable,
  ending: EndingCall,
  stream: PieceOptions | undefined,
): Promise<CallOutcome> {
  const { call, ctx, options } = ending;
  let checked = readChecked(executable, call, options.callFiles);
  if (checked instanceof Promise) {
    checked = await checked;
  }
  if ("failure" in checked) {
    return checked;
  }
  const { value } = checked;
  const returned = await withOutputOf(ctx, () => executable.run(value, ctx));
  if (stream !== undefined) {
    const chunks = await withOutputOf(ctx, () => streamPieces(returned, stream));
    const response = chunks === 0 ? stream.head() : undefined;
    return { result: { json: String(chunks), files: [], ...(response && { response }) } };
  }
  return writeResult(executable, returned, ending);
}
