import { expect, it } from "vitest";
import { OperationBatcher } from "../../../src/storage/sqlite/storage.ts";

/** Batches to a thread that answers nothing by itself, and what the observer is told. */
function open() {
  const sent: (readonly unknown[])[] = [];
  const told: [operation: string, reason: unknown][] = [];
  const batches = new OperationBatcher();
  batches.thread = {
    postMessage: (packed: readonly unknown[]) => sent.push(structuredClone(packed)),
  };
  batches.observer = (operation, tookMs, err) => {
    expect(tookMs).toBeGreaterThanOrEqual(0);
    told.push([operation, err instanceof Error ? err.message : err]);
  };
  const ask = (parameters: unknown = { deploymentId: "d" }) =>
    batches.call("countTasks", parameters, "countTasks");
  return { batches, sent, told, ask };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

it("tells once of each call that is answered, refused or lost with the thread", async () => {
  const { batches, sent, told, ask } = open();
  const answered = [ask(), ask()];
  const silent = batches.call("countTasks", {});
  await turn();
  expect(sent).toHaveLength(1);
  const under = ask();
  const ends = Promise.allSettled([...answered, silent, under]);
  batches.settle([null, "first", { error: "broken", temporary: false }, null, "silent"]);
  await turn();
  const late = [ask()];
  batches.lose(new Error("the thread died"));
  late.push(ask());
  const lost = {
    status: "rejected",
    reason: { reason: "STORAGE_UNAVAILABLE", cause: new Error("the thread died") },
  };
  expect(await ends).toMatchObject([
    { value: "first" },
    { reason: new Error("countTasks: broken") },
    { value: "silent" },
    lost,
  ]);
  expect(await Promise.allSettled(late)).toMatchObject([lost, lost]);
  const unavailable = expect.stringContaining("the database does not answer");
  expect(told).toEqual([
    ["countTasks", undefined],
    ["countTasks", "countTasks: broken"],
    ...[unavailable, unavailable, unavailable].map((reason) => ["countTasks", reason]),
  ]);
});

it("refuses alone a call that cannot be copied to the thread", async () => {
  const { batches, told, ask } = open();
  const calls = Promise.allSettled([ask(), ask({ deploymentId: () => {} }), ask()]);
  await turn();
  batches.settle([null, 1]);
  batches.settle([null, 3]);
  const refusal = expect.stringContaining("could not be cloned");
  expect(await calls).toMatchObject([{ value: 1 }, { reason: { message: refusal } }, { value: 3 }]);
  expect(told.map(([, reason]) => typeof reason)).toEqual(["string", "undefined", "undefined"]);
});

it("refuses calls when 50,000 wait", async () => {
  const { batches, told, ask } = open();
  // Of these, two batches of 32 are under way.
  const many = Promise.allSettled(Array.from({ length: 50_000 + 2 * 32 }, () => ask()));
  await expect(ask()).rejects.toMatchObject({ cause: "50000 calls are waiting for the database" });
  expect(told).toHaveLength(1);
  batches.lose(new Error("the end"));
  expect((await many).every(({ status }) => status === "rejected")).toBe(true);
});
