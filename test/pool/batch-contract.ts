/** What every worker does with calls that come together: a part of the contract of workers. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Execution, ExecutionEnd, ExecutionListener } from "../../src/pool/calls/execution.ts";

/** A call that has begun. */
interface BatchedExecution {
  readonly execution: Execution;
  readonly ends: ExecutionEnd[];
  readonly ended: Promise<ExecutionEnd>;
}

/** Begins calls of the worker that was started for the test, together. */
export type BeginBatch = (
  endpoint: string,
  values: readonly object[],
  listener?: Partial<ExecutionListener>,
) => BatchedExecution[];

type Item = "good" | "bad" | "poison" | "invalid" | "cancelled" | "slow";

/** What an item sends; any other one its kind. */
const TEXTS: Partial<Record<Item, string>> = { invalid: "longer than nine", slow: "listen" };

const result = (value: unknown) => ({
  kind: "result",
  result: { json: JSON.stringify(value), files: [] },
});
const failure = (about: object) => ({ kind: "failure", failure: expect.objectContaining(about) });

export function batchContract(beginBatch: BeginBatch): void {
  const texts = (...all: string[]) => all.map((text) => ({ text }));
  const endsOf = (calls: readonly BatchedExecution[]) => Promise.all(calls.map((one) => one.ended));

  test("runs calls together, and gives each its own result", async () => {
    const lines: string[] = [];
    const calls = beginBatch("gathered", texts("a", "b", "c"), {
      onLog: ({ message }) => lines.push(message),
    });
    expect(await endsOf(calls)).toEqual(["a", "b", "c"].map((text) => result(`${text} of 3`)));
    expect(lines).toEqual(["a b c"]);
  });

  test("checks the arguments of each call alone, before", async () => {
    const calls = beginBatch("gathered", [{ text: "a" }, { text: 5 }, { text: "b" }]);
    expect(await endsOf(calls)).toEqual([
      result("a of 2"),
      failure({ reason: "ARGUMENTS_INVALID" }),
      result("b of 2"),
    ]);
  });

  test("fails one call by an error in the list", async () => {
    const calls = beginBatch("gathered", texts("a", "bad", "c"));
    expect(await endsOf(calls)).toEqual([
      result("a of 3"),
      failure({ reason: "CALL_FAILED", message: "bad item" }),
      result("c of 3"),
    ]);
  });

  test("runs each call once alone when one poisons all", async () => {
    const calls = beginBatch("gathered", texts("a", "poison", "c"));
    expect(await endsOf(calls)).toEqual([
      result("a of 1"),
      failure({ reason: "CALL_FAILED", message: "poisoned" }),
      result("c of 1"),
    ]);
  });

  test("fails all by one error where the endpoint says so", async () => {
    const said = "the function of whole failed for a batch of 2: broken";
    expect(await endsOf(beginBatch("whole", texts("a", "b")))).toEqual([
      failure({ reason: "BATCH_FAILED", message: said }),
      failure({ reason: "BATCH_FAILED", message: said }),
    ]);
  });

  test("fails all when there is not a result for each", async () => {
    const said = /^gathered returned 0 results for a batch of 2: return a list with one for each/;
    const short = failure({ reason: "OUTPUT_INVALID", message: expect.stringMatching(said) });
    expect(await endsOf(beginBatch("gathered", texts("short", "b")))).toEqual([short, short]);
  });

  test("goes on without a call that was aborted, and hears when all were", async () => {
    const [first, second] = beginBatch("gathered", texts("listen", "b")) as [
      BatchedExecution,
      BatchedExecution,
    ];
    first.execution.abort("cancelled");
    expect(await first.ended).toEqual({ kind: "aborted", reason: "cancelled" });
    expect(second.ends).toEqual([]);
    second.execution.abort("caller_gone");
    expect(await second.ended).toEqual({ kind: "aborted", reason: "caller_gone" });
    expect(await endsOf(beginBatch("gathered", texts("a")))).toEqual([result("a of 1")]);
  });

  test("gives each call of any mix exactly one end, and its neighbours their own results", async () => {
    const item = fc.constantFrom<Item>("good", "bad", "poison", "invalid", "cancelled", "slow");
    const batches = fc.array(fc.array(item, { minLength: 1, maxLength: 8 }), {
      minLength: 1,
      maxLength: 4,
    });
    await fc.assert(
      fc.asyncProperty(batches, async (mix) => {
        const begun = mix.map(beginMixed);
        const ends = await Promise.all(begun.map(endsOf));
        for (const [number, items] of mix.entries()) {
          expect(ends[number]).toEqual(items.map((_, index) => expected(items, index)));
        }
        expect(begun.flat().every((one) => one.ends.length === 1)).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  /** Begins a batch; once its function waits for a slow item, its time is up. */
  function beginMixed(items: readonly Item[]): BatchedExecution[] {
    const values = items.map((kind, index) => ({
      text: kind === "good" ? `i${index}` : (TEXTS[kind] ?? kind),
    }));
    const calls: BatchedExecution[] = beginBatch("gathered", values, {
      onLog: ({ message }) => void (message === "waiting" && timeUp(items, calls)),
    });
    for (const [index, call] of calls.entries()) {
      if (items[index] === "cancelled") {
        call.execution.abort("cancelled");
      }
    }
    return calls;
  }

  async function timeUp(items: readonly Item[], calls: readonly BatchedExecution[]) {
    // What is known by then was told without waiting for the slow one.
    await endsOf(calls.filter((_, index) => !isLate(items, index)));
    for (const { execution, ends } of calls) {
      if (ends.length === 0) {
        execution.abort("timeout");
      }
    }
  }

  /** True for an item that is not told its end before the function waits for a slow one. */
  function isLate(items: readonly Item[], index: number): boolean {
    const slow = items.indexOf("slow");
    const isEarly = items[index] === "invalid" || items[index] === "cancelled";
    // After a poisoned run each item runs alone, in their order.
    return slow >= 0 && !isEarly && (index >= slow || !items.includes("poison"));
  }

  function expected(items: readonly Item[], index: number): unknown {
    if (isLate(items, index)) {
      return { kind: "aborted", reason: "timeout" };
    }
    switch (items[index]) {
      case "bad":
        return failure({ reason: "CALL_FAILED", message: "bad item" });
      case "poison":
        return failure({ reason: "CALL_FAILED", message: "poisoned" });
      case "invalid":
        return failure({ reason: "ARGUMENTS_INVALID" });
      case "cancelled":
        return { kind: "aborted", reason: "cancelled" };
      default: {
        const json = expect.stringMatching(`^"i${index} of [1-8]"$`);
        return { kind: "result", result: { json, files: [] } };
      }
    }
  }
}
