import { expect, it } from "vitest";
import { CallBatcher } from "../../../src/storage/postgres/batch.ts";

/** A batcher whose batches fail that have the call `fails`, and what each of them was run with. */
function batcher(options: { readonly heedsRepetition?: boolean } = {}) {
  const ran: (readonly [calls: readonly string[], repeated: boolean])[] = [];
  const batches = new CallBatcher<string, string>({
    ...options,
    maxCalls: 10,
    run: async (calls, repeated) => {
      ran.push([calls, repeated]);
      if (calls.includes("fails")) {
        throw new Error("no");
      }
      return calls.map((call) => call.toUpperCase());
    },
  });
  return { batches, ran };
}

it("runs the calls of a batch that fails one by one, so that one alone fails", async () => {
  const { batches, ran } = batcher();
  const answers = await Promise.allSettled(["a", "fails", "b"].map((call) => batches.add(call)));
  expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(ran).toEqual([
    [["a", "fails", "b"], false],
    ...[[["a"], true] as const, [["fails"], true] as const, [["b"], true] as const],
  ]);
});

it("runs a call that fails alone once", async () => {
  const { batches, ran } = batcher();
  await expect(batches.add("fails")).rejects.toThrow("no");
  expect(ran).toEqual([[["fails"], false]]);
});

it("runs it again where the repetition is another statement", async () => {
  const { batches, ran } = batcher({ heedsRepetition: true });
  await expect(batches.add("fails")).rejects.toThrow("no");
  expect(ran).toEqual([
    [["fails"], false],
    [["fails"], true],
  ]);
});
