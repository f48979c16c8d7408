/** What every worker does with calls that come together: a part of the contract of workers. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Execution, ExecutionEnd, ExecutionListener } from "../../src/pool/execution.ts";

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

type Item = "good" | "bad" | "poison" | "invalid" | "cancelled";

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
    const item = fc.constantFrom<Item>("good", "bad", "poison", "invalid", "cancelled");
    const batches = fc.array(fc.array(item, { minLength: 1, maxLength: 8 }), {
      minLength: 1,
      maxLength: 4,
    });
    await fc.assert(
      fc.asyncProperty(batches, async (mix) => {
        const begun = mix.map((items) =>
          beginBatch(
            "gathered",
            items.map((kind, index) => ({
              text: kind === "invalid" ? "longer than nine" : kind === "good" ? `i${index}` : kind,
            })),
          ),
        );
        for (const [number, items] of mix.entries()) {
          for (const [index, kind] of items.entries()) {
            if (kind === "cancelled") {
              begun[number]?.[index]?.execution.abort("cancelled");
            }
          }
        }
        const ends = await Promise.all(begun.map(endsOf));
        for (const [number, items] of mix.entries()) {
          expect(ends[number]).toEqual(items.map((kind, index) => expected(kind, index)));
        }
        expect(begun.flat().every((one) => one.ends.length === 1)).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  function expected(kind: Item, index: number): unknown {
    switch (kind) {
      case "good": {
        const json = expect.stringMatching(`^"i${index} of [1-8]"$`);
        return { kind: "result", result: { json, files: [] } };
      }
      case "bad":
        return failure({ reason: "CALL_FAILED", message: "bad item" });
      case "poison":
        return failure({ reason: "CALL_FAILED", message: "poisoned" });
      case "invalid":
        return failure({ reason: "ARGUMENTS_INVALID" });
      case "cancelled":
        return { kind: "aborted", reason: "cancelled" };
    }
  }
}
