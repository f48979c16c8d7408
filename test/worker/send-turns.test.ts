import { expect, it } from "vitest";
import { SendTurns } from "../../src/worker/outbox.ts";

const MIB = 1024 ** 2;
const { signal: never } = new AbortController();

/** The numbers of the pieces that have entered, in their order. */
function enterAll(turns: SendTurns, sizes: readonly number[], signal = never) {
  const entered: number[] = [];
  const refused: unknown[] = [];
  sizes.forEach((bytes, index) => {
    const turn = turns.enter(bytes, signal);
    if (turn === undefined) {
      entered.push(index);
    } else {
      turn.then(
        () => entered.push(index),
        (err) => refused.push(err),
      );
    }
  });
  return { entered, refused };
}
const turned = () => new Promise((resolve) => setImmediate(resolve));

it("pieces enter while little is unsent, and the others in their order as it leaves", async () => {
  const turns = new SendTurns();
  const { entered } = enterAll(turns, [MIB / 2, MIB / 2, MIB / 4, MIB / 4, MIB]);
  await turned();
  expect(entered).toEqual([0, 1]);
  turns.left(MIB / 2);
  await turned();
  expect(entered).toEqual([0, 1, 2, 3]);
  turns.left(MIB / 2);
  await turned();
  expect(entered).toEqual([0, 1, 2, 3]);
  turns.left(MIB / 2);
  await turned();
  expect(entered).toEqual([0, 1, 2, 3, 4]);
});

it("a small piece does not overtake a large one that waits", async () => {
  const turns = new SendTurns();
  const { entered } = enterAll(turns, [MIB / 2, MIB, 1]);
  await turned();
  expect(entered).toEqual([0]);
});

it("a piece that is larger than all room enters alone", () => {
  const turns = new SendTurns();
  expect(turns.enter(8 * MIB, never)).toBeUndefined();
});

it("an aborted call gives up its turn at once, and those behind it go on", async () => {
  const turns = new SendTurns();
  enterAll(turns, [MIB]);
  const aborted = new AbortController();
  const { refused } = enterAll(turns, [MIB, MIB], aborted.signal);
  const { entered } = enterAll(turns, [MIB / 2]);
  aborted.abort("caller_gone");
  await turned();
  expect(refused).toEqual(["caller_gone", "caller_gone"]);
  turns.left(MIB);
  await turned();
  expect(entered).toEqual([0]);
});

it("a call that was aborted before waits for no turn", async () => {
  const turns = new SendTurns();
  enterAll(turns, [MIB]);
  const { refused } = enterAll(turns, [MIB, 1], AbortSignal.abort("caller_gone"));
  const { entered } = enterAll(turns, [MIB / 2]);
  await turned();
  expect(refused).toEqual(["caller_gone", "caller_gone"]);
  turns.left(MIB);
  await turned();
  expect(entered).toEqual([0]);
});
