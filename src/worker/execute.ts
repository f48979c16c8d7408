/**
 * Executes calls in a worker: reads and validates the arguments, runs the function,
 * validates and writes the result. Any error becomes the failure of that one call.
 */

import { SlotMap } from "../collections/slots.ts";
import {
  type AbortReason,
  type Call,
  type CallFailure,
  type Chunk,
  MAX_INLINE_RESULT_CHARACTERS,
  packPayload,
  type SentPayload,
} from "../protocol/messages.ts";
import type { Executable, ReadyService } from "../sdk/describe.ts";
import { CallContext, type CallOutlets } from "./call-context.ts";
import { CallFiles } from "./call-files.ts";
import type { Channel } from "./channel.ts";
import type { Meters } from "./custom-metrics.ts";
import {
  argumentsInvalid,
  callFailed,
  outputInvalid,
  outputRefused,
  resultTooLarge,
} from "./failure.ts";
import { LogBudget } from "./log-budget.ts";
import type { Outbox } from "./outbox.ts";
import {
  type ResultOptions,
  readArguments,
  TooLargeError,
  UnserialisableError,
  writeFile,
  writeJson,
  writeText,
} from "./payload.ts";
import { Credit, type PieceOptions, PieceRefused, streamPieces } from "./stream.ts";

/** A call under way. */
interface Running {
  readonly ctx: CallContext;
  /** Present when its result is streamed. */
  readonly credit?: Credit;
}

type Outcome = { readonly result: SentPayload } | { readonly failure: CallFailure };

export interface ExecutorOptions {
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
    this.#outlets = { channel, meters, logBudget: new LogBudget() };
    this.#outbox = options.outbox;
    this.#options = options;
  }

  setTextEndpoints(endpoints: readonly string[]): void {
    this.#textEndpoints = new Set(endpoints);
  }

  start(call: Call): void {
    const executable = this.#service.endpoints.get(call.endpoint);
    if (executable === undefined) {
      const message = `service ${this.#service.manifest.name} has no endpoint ${call.endpoint}`;
      const failure = { code: "not_found", reason: "ENDPOINT_NOT_FOUND", message } as const;
      this.#outbox.add({ id: call.id, failure });
      return;
    }
    const ctx = new CallContext(this.#outlets, call, executable.manifest.kind);
    const running = executable.result.stream ? { ctx, credit: new Credit(ctx.signal) } : { ctx };
    this.#running.set(call.id, running);
    void this.#execute(executable, call, running);
  }

  abort(id: number, reason: AbortReason): void {
    this.#running.get(id)?.ctx.abort(reason);
  }

  /** The node takes more chunks of a call. */
  more(id: number, count: number): void {
    this.#running.get(id)?.credit?.add(count);
  }

  /** Calls `idle` once no call is under way. */
  whenIdle(idle: () => void): void {
    if (this.#running.size === 0) {
      idle();
    } else {
      this.#idle = idle;
    }
  }

  async #execute(executable: Executable, call: Call, running: Running): Promise<void> {
    const { ctx } = running;
    let outcome: Outcome;
    const { maxFileBytes, maxResultBytes, scratchFolder } = this.#options;
    const callFiles = new CallFiles(scratchFolder, call.id);
    const asText = this.#textEndpoints.has(call.endpoint);
    try {
      const options = { callFiles, maxFileBytes, maxResultBytes, asText };
      const stream = running.credit && this.#streaming(executable, call, running.credit);
      outcome = await run(executable, call, { ctx, options, stream });
    } catch (err) {
      outcome = { failure: failureOf(err, call, ctx) };
    }
    callFiles.clear();
    ctx.end();
    this.#running.take(call.id);
    this.#outbox.add(
      "failure" in outcome
        ? { id: call.id, failure: outcome.failure }
        : { id: call.id, result: packPayload(outcome.result) },
    );
    if (this.#running.size === 0) {
      this.#idle?.();
    }
  }

  #streaming({ result }: Executable, { id, endpoint }: Call, credit: Credit): PieceOptions {
    const send = (chunk: Omit<Chunk, "id">) => this.#outbox.addChunk({ id, ...chunk });
    return { endpoint, result, credit, send };
  }
}

function failureOf(err: unknown, { endpoint }: Call, ctx: CallContext): CallFailure {
  if (err instanceof PieceRefused) {
    return err.failure;
  }
  return err instanceof TooLargeError
    ? resultTooLarge(endpoint, err.maxBytes)
    : callFailed(err, ctx.abortReason);
}

/** How to run a call. */
interface Run {
  readonly ctx: CallContext;
  readonly options: ResultOptions;
  readonly stream: PieceOptions | undefined;
}

async function run(
  executable: Executable,
  call: Call,
  { ctx, options, stream }: Run,
): Promise<Outcome> {
  let given = readArguments(call.arguments, executable.arguments.files, options.callFiles);
  if (given instanceof Promise) {
    given = await given;
  }
  let checked = executable.arguments.validate(given);
  if (checked instanceof Promise) {
    checked = await checked;
  }
  if (checked.issues !== undefined) {
    return { failure: argumentsInvalid(call.endpoint, checked.issues) };
  }
  const returned = await executable.run(checked.value, ctx);
  if (stream !== undefined) {
    const chunks = await streamPieces(returned, stream);
    return { result: { json: String(chunks), files: [] } };
  }
  return finish(executable, returned, { endpoint: call.endpoint, options });
}

async function finish(
  { result }: Executable,
  returned: unknown,
  { endpoint, options }: { readonly endpoint: string; readonly options: ResultOptions },
): Promise<Outcome> {
  let value = returned;
  if (result.schema !== undefined) {
    let checked = result.schema["~standard"].validate(returned);
    if (checked instanceof Promise) {
      checked = await checked;
    }
    if (checked.issues !== undefined) {
      return { failure: outputRefused(endpoint, checked.issues) };
    }
    value = checked.value;
  }
  try {
    if (result.file !== undefined) {
      return { result: await writeFile(value, result.file, options) };
    }
    const written = writeJson(value);
    const { length } = written.json;
    if (length > options.maxResultBytes) {
      throw new TooLargeError(options.maxResultBytes);
    }
    return {
      result:
        length > MAX_INLINE_RESULT_CHARACTERS
          ? await writeText(value, written.json, options)
          : written,
    };
  } catch (err) {
    if (err instanceof UnserialisableError) {
      return { failure: outputInvalid(`the result of ${endpoint} cannot be sent: ${err.message}`) };
    }
    throw err;
  }
}
