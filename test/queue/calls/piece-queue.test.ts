import { describe, expect, test } from "vitest";
import { SharedBound } from "../../../src/collections/shared-bound.ts";
import { HeldPieces, PieceQueue } from "../../../src/queue/calls/piece-queue.ts";

const end = { kind: "result", result: { json: "2", files: [] } } as const;

describe("the pieces of a call", () => {
  test("come in their order, then the end, whether the reader or the worker is first", async () => {
    const queue = new PieceQueue(new HeldPieces());
    const first = queue.next();
    queue.push("a");
    queue.push("b");
    queue.end(end);
    expect([await first, await queue.next(), await queue.next(), await queue.next()]).toEqual([
      ...[{ piece: "a" }, { piece: "b" }, { end }, { end }],
    ]);
  });

  test("are held within a budget, beyond which the call that makes more ends", async () => {
    const held = new HeldPieces(new SharedBound(13));
    const slow = new PieceQueue(held);
    const other = new PieceQueue(held);
    slow.push("x".repeat(6));
    other.push("y".repeat(5));
    expect(await other.next()).toMatchObject({
      end: { kind: "unavailable", problem: { reason: "SERVER_BUSY" } },
    });
    expect(await slow.next()).toEqual({ piece: "xxxxxx" });
    expect(held.take(10)).toBeUndefined();
  });

  test("of others are no business of who finds no room", () => {
    const held = new HeldPieces(new SharedBound(1_300));
    held.of("one").take(960);
    held.of("two").take(311);
    expect(held.of("three").take(40)?.rawMessage).not.toMatch(/960|311|1271/);
    expect(held.of("one").take(20)?.rawMessage).toContain("the organization has its share");
  });

  test("count as the bytes that they are, not as characters", async () => {
    const held = new HeldPieces(new SharedBound(40));
    const queue = new PieceQueue(held);
    queue.push("中".repeat(10));
    expect(held.take(1)).toMatchObject({ reason: "SERVER_BUSY" });
    expect(await queue.next()).toEqual({ piece: "中".repeat(10) });
    expect(held.take(30)).toBeUndefined();
  });

  test("are given back when the reader leaves", () => {
    const held = new HeldPieces(new SharedBound(13));
    const queue = new PieceQueue(held);
    queue.push("x".repeat(10));
    expect(held.take(1)).toMatchObject({ reason: "SERVER_BUSY" });
    // Another organization has room.
    expect(held.of("other").take(3)).toBeUndefined();
    queue.leave();
    queue.push("late");
    expect(held.take(10)).toBeUndefined();
  });
});
