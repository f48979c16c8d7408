/**
 * Runs the calls of a batch in one execution of their function. Each call is checked alone
 * before, and has an end of its own: a bad one, an aborted one or a poisoned one takes nothing
 * from the others.
 */
import type { AbortReason, Call, CallFailure } from "../protocol/messages.ts";
import type { BatchContext, TaskContext } from "../sdk/context.ts";
import type { Executable } from "../sdk/describe.ts";
import type { CallContext } from "./call-context.ts";
import { batchFailed, callFailed, outputInvalid } from "./failure.ts";
import type { ResultOptions } from "./payload.ts";
import { type CallOutcome, readChecked, writeResult } from "./run.ts";

/** A call of a batch. */
export interface BatchedCall {
  readonly call: Call;
  readonly ctx: CallContext;
  readonly options: ResultOptions;
  /** Tells its end; a second one does nothing. */
  end(outcome: CallOutcome): void;
}

/** A call whose arguments are valid. */
interface CheckedCall extends BatchedCall {
  readonly value: unknown;
}

/** One run of the function: for all calls, or for one alone. */
interface Execution {
  readonly calls: readonly CheckedCall[];
  readonly controller: AbortController;
}

/** What the function threw, and whether it was aborted. */
interface Thrown {
  readonly err: unknown;
  readonly aborted: boolean;
}

export class Batch {
  readonly #executable: Executable;
  readonly #calls: readonly BatchedCall[];
  /** What the function is running for. */
  #current: Execution | undefined;

  constructor(executable: Executable, calls: readonly BatchedCall[]) {
    this.#executable = executable;
    this.#calls = calls;
  }

  /**
   * A call was aborted. The function hears it when all were that it is running for, and goes on
   * for the others; a call that it has nothing to do with, or no more, ends at once.
   */
  aborted({ call, ctx, end }: BatchedCall, reason: AbortReason): void {
    const { calls = [], controller } = this.#current ?? {};
    const isRunning = calls.some((each) => each.call.id === call.id);
    if (isRunning && calls.every(isAborted)) {
      controller?.abort(ctx.signal.reason);
    } else {
      end({ failure: callFailed(ctx.signal.reason, reason) });
    }
  }

  /** Runs it; the calls have ended when it resolves. */
  async run(): Promise<void> {
    const checked = (await Promise.all(this.#calls.map((one) => this.#check(one)))).filter(
      (one) => one !== undefined,
    );
    // Also when all were aborted while they were checked, and have ended.
    if (checked.every(isAborted)) {
      return;
    }
    const thrown = await this.#execute(checked);
    if (thrown === undefined) {
      return;
    }
    const splits = this.#executable.manifest.batch?.onError === "split" && !thrown.aborted;
    if (checked.length === 1 || !splits) {
      for (const one of checked) {
        one.end({ failure: this.#failure(thrown.err, one, checked.length) });
      }
      return;
    }
    for (const one of checked) {
      const alone = isAborted(one) ? undefined : await this.#execute([one]);
      if (alone !== undefined) {
        one.end({ failure: callFailed(alone.err, one.ctx.abortReason) });
      }
    }
  }

  async #check(one: BatchedCall): Promise<CheckedCall | undefined> {
    const { call, ctx, options, end } = one;
    try {
      const checked = await readChecked(this.#executable, call, options.callFiles);
      if ("failure" in checked) {
        end(checked);
        return undefined;
      }
      return { ...one, value: checked.value };
    } catch (err) {
      end({ failure: callFailed(err, ctx.abortReason) });
      return undefined;
    }
  }

  /** Calls the function. Returns what it threw, after which no call has ended. */
  async #execute(calls: readonly CheckedCall[]): Promise<Thrown | undefined> {
    const { run, manifest } = this.#executable;
    const controller = new AbortController();
    this.#current = { calls, controller };
    let returned: unknown;
    try {
      const context = contextOf(calls, controller.signal);
      returned = await run(
        calls.map(({ value }) => value),
        // The function of an endpoint with batches takes this context.
        context as unknown as TaskContext,
      );
    } catch (err) {
      return { err, aborted: controller.signal.aborted };
    }
    if (!Array.isArray(returned) || returned.length !== calls.length) {
      const failure = outputInvalid(wrongLength(manifest.name, returned, calls.length));
      for (const { end } of calls) {
        end({ failure });
      }
      return undefined;
    }
    await Promise.all(calls.map((one, index) => this.#finish(one, returned[index])));
    return undefined;
  }

  async #finish({ call, ctx, options, end }: CheckedCall, returned: unknown): Promise<void> {
    if (returned instanceof Error) {
      end({ failure: callFailed(returned, ctx.abortReason) });
      return;
    }
    end(await writeResult(this.#executable, returned, { call, ctx, options }));
  }

  #failure(err: unknown, { ctx }: BatchedCall, size: number): CallFailure {
    const failure = callFailed(err, ctx.abortReason);
    const isWhole = this.#executable.manifest.batch?.onError === "fail" && size > 1;
    return isWhole ? batchFailed(failure, this.#executable.manifest.name, size) : failure;
  }
}

function isAborted({ ctx }: BatchedCall): boolean {
  return ctx.abortReason !== undefined;
}

function contextOf(calls: readonly BatchedCall[], signal: AbortSignal): BatchContext {
  const [first] = calls;
  return {
    signal,
    size: calls.length,
    item: (index) => {
      const found = calls[index];
      if (found === undefined) {
        throw new RangeError(`the batch has ${calls.length} items, and no item ${index}`);
      }
      return found.ctx;
    },
    get metrics() {
      return (first as BatchedCall).ctx.metrics;
    },
  };
}

function wrongLength(endpoint: string, returned: unknown, count: number): string {
  const got = Array.isArray(returned) ? `${returned.length} results` : `a ${typeof returned}`;
  return `${endpoint} returned ${got} for a batch of ${count}: return a list with one for each, in their order; one may be an Error`;
}
