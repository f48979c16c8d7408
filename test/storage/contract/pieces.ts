import { expect } from "vitest";
import type { PieceAppend, PiecePosition } from "../../../src/storage/pieces.ts";
import type { Attempt, Storage } from "../../../src/storage/storage.ts";
import type { Contract } from "../contract.ts";
import { attempt, claim, endAttempt, FAILURE, key, startTask, success } from "../fixtures.ts";

const BEGINNING: PiecePosition = { attempt: 0, sequence: 0 };

function append(
  storage: Storage,
  by: Attempt,
  ...[first, pieces, form = "text"]: [
    first: number,
    pieces: PieceAppend["pieces"],
    form?: PieceAppend["form"],
  ]
): Promise<boolean[]> {
  return storage.appendPieces({ appends: [{ attempt: by, form, first, pieces }] });
}

/** A page of task "a". */
function read(storage: Storage, after = BEGINNING, maxBytes = 1_000_000) {
  return storage.readPieces({ ...key("a"), after, maxBytes });
}

/** All pieces of task "a" after a position, read in pages of this size. */
async function readAll(storage: Storage, after: PiecePosition, maxBytes: number) {
  const pieces: [sequence: number, data: unknown][] = [];
  for (let position = after; ; ) {
    const page = await read(storage, position, maxBytes);
    pieces.push(
      ...(page?.pieces ?? []).map(({ sequence, data }): [number, unknown] => [sequence, data]),
    );
    if (!page?.more) {
      return pieces;
    }
    const sequence = page.pieces.at(-1)?.sequence ?? position.sequence;
    position = { attempt: page.task.attempt, sequence };
  }
}

/** Brings a running attempt of "a" back to the queue and claims the task again. */
async function beginAgain(storage: Storage, running: Attempt): Promise<Attempt> {
  await endAttempt(storage, running, { status: "queued", failed: true, failure: FAILURE });
  await claim(storage);
  return { ...running, attempt: running.attempt + 1 };
}

export function piecesContract({ it }: Contract): void {
  it("keeps pieces whole and in order, whatever they are", async (storage) => {
    const running = await startTask(storage, "a");
    const texts = ["one", "", " two\n", "ü\u{1f600}", "nul \0 in it"];
    expect(await append(storage, running, 1, texts.slice(0, 2))).toEqual([true]);
    expect(await append(storage, running, 3, texts.slice(2))).toEqual([true]);
    expect(await read(storage)).toMatchObject({
      task: { taskId: "a", status: "running", attempt: 1 },
      form: "text",
      pieces: texts.map((data, index) => ({ sequence: index + 1, data })),
      more: false,
    });
  });

  it("keeps the form of pieces", async (storage) => {
    const bytes = [Uint8Array.of(0, 255, 128), new Uint8Array(0)];
    await append(storage, await startTask(storage, "a"), 1, bytes, "bytes");
    const page = await read(storage);
    expect(page?.form).toBe("bytes");
    expect(page?.pieces.map(({ data }) => data)).toEqual(bytes);
  });

  it("has no pieces of a task that gave none, and no page of a task that is not there", async (storage) => {
    await startTask(storage, "a");
    expect(await read(storage)).toMatchObject({ form: undefined, pieces: [], more: false });
    const nowhere = { ...key("b"), after: BEGINNING, maxBytes: 1 };
    expect(await storage.readPieces(nowhere)).toBeUndefined();
  });

  it("answers exactly the rest after any piece, in pages of any size", async (storage) => {
    const running = await startTask(storage, "a");
    const texts = Array.from({ length: 300 }, (_, index) => `${index} `.repeat(index * 5));
    for (let first = 1, count = 1; first <= texts.length; first += count, count += 7) {
      await append(storage, running, first, texts.slice(first - 1, first - 1 + count));
    }
    const all = texts.map((data, index) => [index + 1, data]);
    for (const sequence of [0, 1, 7, 8, 150, 299, 300, 301]) {
      for (const maxBytes of [1, 10_000, 1_000_000]) {
        const rest = await readAll(storage, { attempt: 1, sequence }, maxBytes);
        expect(rest, `${sequence} ${maxBytes}`).toEqual(all.slice(sequence));
      }
    }
  });

  it("bounds a page, however many pieces there are", async (storage) => {
    const running = await startTask(storage, "a");
    const large = "x".repeat(100_000);
    await append(storage, running, 1, Array(20).fill(large));
    expect((await read(storage, BEGINNING, 1))?.pieces).toHaveLength(1);
    expect((await read(storage, BEGINNING, 250_000))?.pieces).toHaveLength(3);
    for (let first = 21; first <= 320; first += 1) {
      await append(storage, running, first, ["y"]);
    }
    const page = await read(storage, { attempt: 1, sequence: 20 });
    expect(page?.more).toBe(true);
    expect(page?.pieces.length).toBeLessThan(300);
  });

  it("takes a repeated append once", async (storage) => {
    const running = await startTask(storage, "a");
    for (let times = 0; times < 2; times += 1) {
      expect(await append(storage, running, 1, ["a", "b"])).toEqual([true]);
    }
    expect(await readAll(storage, BEGINNING, 100)).toEqual([
      [1, "a"],
      [2, "b"],
    ]);
  });

  it("takes pieces of many attempts at once, and refuses those of stale ones", async (storage) => {
    const appends = ["a", "b", "c"].map(
      (taskId): PieceAppend => ({
        attempt: attempt(taskId, taskId === "b" ? { attempt: 2 } : {}),
        form: "json",
        first: 1,
        pieces: [`"${taskId}"`],
      }),
    );
    for (const taskId of ["a", "b", "c"]) {
      await startTask(storage, taskId);
    }
    expect(await storage.appendPieces({ appends })).toEqual([true, false, true]);
    expect(await storage.appendPieces({ appends: [] })).toEqual([]);
    for (const taskId of ["a", "b", "c"]) {
      const page = await storage.readPieces({ ...key(taskId), after: BEGINNING, maxBytes: 100 });
      expect(page?.pieces.map(({ data }) => data)).toEqual(taskId === "b" ? [] : [`"${taskId}"`]);
    }
  });

  it("begins anew with each attempt, and never mixes two", async (storage) => {
    const first = await startTask(storage, "a");
    await append(storage, first, 1, ["a", "b", "c"]);
    const second = await beginAgain(storage, first);
    expect(await read(storage, { attempt: 1, sequence: 2 })).toMatchObject({
      task: { attempt: 2 },
      pieces: [],
    });
    expect(await append(storage, first, 4, ["d"])).toEqual([false]);
    await append(storage, second, 1, ["A"]);
    expect(await readAll(storage, { attempt: 1, sequence: 2 }, 100)).toEqual([[1, "A"]]);
    await append(storage, second, 2, ["B"]);
    expect(await readAll(storage, { attempt: 2, sequence: 1 }, 100)).toEqual([[2, "B"]]);
    expect(await readAll(storage, BEGINNING, 100)).toEqual([
      [1, "A"],
      [2, "B"],
    ]);
  });

  it("keeps what an attempt gave while the next one has not begun", async (storage) => {
    const first = await startTask(storage, "a");
    await append(storage, first, 1, ["a", "b"]);
    await endAttempt(storage, first, { status: "queued", failed: true, failure: FAILURE });
    expect(await readAll(storage, { attempt: 1, sequence: 1 }, 100)).toEqual([[2, "b"]]);
  });

  it("keeps the pieces of a task that has ended, and takes no more", async (storage) => {
    const ends = [
      success("ab"),
      { status: "failure", failure: FAILURE },
      { status: "cancelled" },
    ] as const;
    for (const [index, end] of ends.entries()) {
      const running = await startTask(storage, `t${index}`);
      await append(storage, running, 1, ["a", "b"]);
      await endAttempt(storage, running, end);
      expect(await append(storage, running, 3, ["c"])).toEqual([false]);
      const page = await storage.readPieces({ ...running, after: BEGINNING, maxBytes: 100 });
      expect(page?.task.status).toBe(end.status);
      expect(page?.pieces.map(({ data }) => data)).toEqual(["a", "b"]);
    }
  });

  it("tells the history of a task how far its current attempt is", async (storage) => {
    const lastPiece = async () =>
      (await storage.getHistory({ ...key("a"), afterSequence: 0, limit: 10 }))?.lastPiece;
    const first = await startTask(storage, "a");
    expect(await lastPiece()).toBe(0);
    await append(storage, first, 1, ["a", "b", "c"]);
    expect(await lastPiece()).toBe(3);
    await beginAgain(storage, first);
    expect(await lastPiece()).toBe(0);
  });
}
