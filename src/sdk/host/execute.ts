/**
 * Executes calls: read the arguments, validate, run, validate the result,
 * write it. Whatever goes wrong becomes the failure of that one call.
 */
import type { Executable, ReadyService } from "../describe.ts";
import {
  type AbortReason,
  type Call,
  type CallFailure,
  type Payload,
  payloadBytes,
} from "../protocol.ts";
import { CallContext } from "./call-context.ts";
import type { Channel } from "./channel.ts";
import {
  argumentsInvalid,
  callFailed,
  outputInvalid,
  outputRefused,
  resultTooLarge,
} from "./failure.ts";
import type { Outbox } from "./outbox.ts";
import { readArguments, UnserialisableError, writeFile, writeJson } from "./payload.ts";

type Outcome = { readonly result: Payload } | { readonly failure: CallFailure };

export interface ExecutorOptions {
  readonly channel: Channel;
  readonly outbox: Outbox;
  /** A larger result is refused here, before it leaves the worker. */
  readonly maxResultBytes: number;
}

export class Executor {
  readonly #service: ReadyService;
  readonly #channel: Channel;
  readonly #outbox: Outbox;
  readonly #maxResultBytes: number;
  readonly #running = new Map<number, CallContext>();
  #idle: (() => void) | undefined;

  constructor(service: ReadyService, { channel, outbox, maxResultBytes }: ExecutorOptions) {
    this.#service = service;
    this.#channel = channel;
    this.#outbox = outbox;
    this.#maxResultBytes = maxResultBytes;
  }

  start(call: Call): void {
    const executable = this.#service.endpoints.get(call.endpoint);
    if (executable === undefined) {
      const message = `service ${this.#service.manifest.name} has no endpoint ${call.endpoint}`;
      const failure = { code: "not_found", reason: "ENDPOINT_NOT_FOUND", message } as const;
      this.#outbox.add({ id: call.id, failure });
      return;
    }
    const ctx = new CallContext(this.#channel, call, executable.manifest.kind);
    this.#running.set(call.id, ctx);
    void this.#execute(executable, call, ctx);
  }

  abort(id: number, reason: AbortReason): void {
    this.#running.get(id)?.abort(reason);
  }

  /** Calls back when no call is under way. */
  whenIdle(idle: () => void): void {
    if (this.#running.size === 0) {
      idle();
    } else {
      this.#idle = idle;
    }
  }

  async #execute(executable: Executable, call: Call, ctx: CallContext): Promise<void> {
    let outcome: Outcome;
    try {
      outcome = await run(executable, call, ctx);
    } catch (err) {
      outcome = { failure: callFailed(err, ctx.abortReason) };
    }
    if ("result" in outcome && payloadBytes(outcome.result) > this.#maxResultBytes) {
      outcome = { failure: resultTooLarge(call.endpoint, this.#maxResultBytes) };
    }
    ctx.end();
    this.#running.delete(call.id);
    this.#outbox.add({ id: call.id, ...outcome });
    if (this.#running.size === 0) {
      this.#idle?.();
    }
  }
}

async function run(executable: Executable, call: Call, ctx: CallContext): Promise<Outcome> {
  const given = readArguments(call.arguments, executable.arguments.files);
  let checked = executable.arguments.validate(given);
  if (checked instanceof Promise) {
    checked = await checked;
  }
  if (checked.issues !== undefined) {
    return { failure: argumentsInvalid(call.endpoint, checked.issues) };
  }
  return finish(executable, call.endpoint, await executable.run(checked.value, ctx));
}

async function finish(
  { result }: Executable,
  endpoint: string,
  returned: unknown,
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
    const written = result.file === undefined ? writeJson(value) : writeFile(value, result.file);
    return { result: written instanceof Promise ? await written : written };
  } catch (err) {
    if (err instanceof UnserialisableError) {
      return { failure: outputInvalid(`the result of ${endpoint} cannot be sent: ${err.message}`) };
    }
    throw err;
  }
}
