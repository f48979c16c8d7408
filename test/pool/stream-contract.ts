/** What every worker does with an endpoint that streams: a part of the contract of workers. */
import { expect, test } from "vitest";
import type { Execution, ExecutionEnd, ExecutionListener } from "../../src/pool/calls/execution.ts";
import {
  MAX_INLINE_FILE_BYTES,
  MAX_INLINE_RESULT_CHARACTERS,
} from "../../src/protocol/messages.ts";
import { frame } from "../fixtures/frames.ts";

/** Small pieces that fill the window of a call. */
const WINDOW_PIECES = 32;

/** A call that has begun. */
interface BegunCall {
  readonly execution: Execution;
  readonly ends: ExecutionEnd[];
  readonly ended: Promise<ExecutionEnd>;
}

/** Calls of the worker that was started for the test. */
export interface ContractCalls {
  begin(endpoint: string, values?: object, listener?: Partial<ExecutionListener>): BegunCall;
  /** Its end, and that there is no second one after the worker's. */
  endOf(call: BegunCall): Promise<ExecutionEnd>;
}

const results = (...list: object[]) => frame({ type: "results", results: list });
const chunks = (...list: object[]) => frame({ type: "chunks", chunks: list });
const forged = (bytes: Buffer) => ({ base64: bytes.toString("base64") });
const result = (value: unknown) => ({
  kind: "result",
  result: { json: JSON.stringify(value), files: [] },
});

export function streamContract({ begin, endOf }: ContractCalls): void {
  /** Begins a call whose pieces are consumed as they come, at most `most` of them. */
  function beginStream(endpoint: string, values: object = {}, most = Number.POSITIVE_INFINITY) {
    const pieces: (string | Uint8Array)[] = [];
    const sequences: number[] = [];
    const call = begin(endpoint, values, {
      onChunk(piece, sequence) {
        pieces.push(piece);
        sequences.push(sequence);
        if (pieces.length <= most) {
          call.execution.more(1);
        }
      },
    });
    return { ...call, pieces, sequences };
  }

  const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

  test("streams values, in their order, and ends with how many there were", async () => {
    const list = numbers(100).map((number) => ({ number, text: "x".repeat(8 * number) }));
    const { pieces, sequences, ended } = beginStream("values", { list });
    expect(await ended).toEqual(result(100));
    expect(pieces).toEqual(list.map((value) => JSON.stringify(value)));
    expect(sequences).toEqual(numbers(100));
  });

  test("streams texts of any length up to the largest piece", async () => {
    const list = ["", "ä\r\n", "x".repeat(257), "y".repeat(MAX_INLINE_RESULT_CHARACTERS)];
    const { pieces, ended } = beginStream("texts", { list });
    expect(await ended).toEqual(result(4));
    expect(pieces).toEqual(list);
  });

  test("streams bytes up to the largest piece", async () => {
    const sizes = [0, 1, MAX_INLINE_FILE_BYTES];
    const { pieces, ended } = beginStream("blocks", { sizes });
    expect(await ended).toEqual(result(3));
    expect(pieces.map((piece) => Buffer.from(piece))).toEqual(
      sizes.map((size) => Buffer.alloc(size, 7)),
    );
  });

  test.each([
    ["texts", { list: ["a", "y".repeat(MAX_INLINE_RESULT_CHARACTERS + 1)] }],
    ["blocks", { sizes: [1, MAX_INLINE_FILE_BYTES + 1] }],
  ])("fails a call of %s with a larger piece, after those before it", async (name, values) => {
    const { pieces, ended } = beginStream(name, values);
    const failure = { code: "internal", reason: "RESULT_TOO_LARGE" };
    expect(await ended).toMatchObject({ kind: "failure", failure });
    expect(pieces.length).toBe(1);
  });

  test("asks a function for no more pieces than are wanted", async () => {
    const { execution, pieces } = beginStream("endless", {}, 0);
    await expect.poll(() => pieces.length).toBe(WINDOW_PIECES);
    expect(await begin("asked").ended).toEqual(result({ asked: 32, left: false }));
    execution.more(16);
    await expect.poll(() => pieces.length).toBe(48);
    expect(await begin("asked").ended).toEqual(result({ asked: 48, left: false }));
    execution.more(15);
    expect(await begin("asked").ended).toEqual(result({ asked: 48, left: false }));
    expect(pieces.length).toBe(48);
  });

  test("asks a function for no more large pieces than a window holds", async () => {
    const sizes = Array.from({ length: 6 }, () => 200_000);
    const { execution, pieces, ended } = beginStream("blocks", { sizes }, 0);
    // The one that fills the window, of 256 KiB, is sent whole.
    await expect.poll(() => pieces.length).toBe(2);
    expect(await begin("echo", { value: 1 }).ended).toEqual(result(1));
    expect(pieces.length).toBe(2);
    execution.more(1);
    await expect.poll(() => pieces.length).toBe(3);
    expect(await begin("echo", { value: 1 }).ended).toEqual(result(1));
    expect(pieces.length).toBe(3);
    execution.more(2);
    await expect.poll(() => pieces.length).toBe(5);
    execution.more(2);
    expect(await ended).toEqual(result(6));
  });

  test("passes a piece on before the function goes on to the next", async () => {
    const came = Promise.withResolvers<string | Uint8Array>();
    begin("first", {}, { onChunk: came.resolve });
    expect(await came.promise).toBe('"first"');
  });

  test("that fails in the middle of a stream has sent what was before", async () => {
    const { pieces, ended } = beginStream("breaks", { after: 40 });
    const failure = { code: "internal", reason: "CALL_FAILED", message: "broken" };
    expect(await ended).toMatchObject({ kind: "failure", failure });
    expect(pieces.length).toBe(40);
  });

  test.each([
    ["waits for credit", 0],
    ["goes on", Number.POSITIVE_INFINITY],
  ])("leaves an aborted function that %s", async (_, most) => {
    const { execution, pieces, ended } = beginStream("endless", {}, most);
    await expect.poll(() => pieces.length).toBeGreaterThanOrEqual(WINDOW_PIECES);
    execution.abort("caller_gone");
    const count = pieces.length;
    expect(await ended).toEqual({ kind: "aborted", reason: "caller_gone" });
    expect(await begin("asked").ended).toMatchObject({
      result: { json: expect.stringContaining('"left":true') },
    });
    expect(pieces.length).toBe(count);
  });

  test("may send chunks of a call whose abort it has not heard of, which go nowhere", async () => {
    const late = forged(chunks({ id: 1, sequence: 1, data: "1" }));
    const { execution, pieces, ended } = beginStream("forge_late", late);
    expect(await begin("echo", { value: 1 }).ended).toEqual(result(1));
    execution.abort("cancelled");
    expect(await ended).toEqual({ kind: "aborted", reason: "cancelled" });
    expect(await begin("echo", { value: 1 }).ended).toEqual(result(1));
    expect(pieces).toEqual([]);
  });

  const notDue = (sequence: number, id: number) =>
    `it sent chunk ${sequence} of call ${id}, which was not due`;
  test.each([
    ["out of order", "endless", { id: 1, sequence: 99, data: "1" }, notDue(99, 1)],
    ["beyond its credit", "endless", { id: 1, sequence: 33, data: "1" }, notDue(33, 1)],
    ["of an endpoint that does not stream", "linger", { id: 1, sequence: 1 }, notDue(1, 1)],
    ["of a call that is not under way", "linger", { id: 9, sequence: 1 }, notDue(1, 9)],
  ])("that sends a chunk %s ends", async (_, endpoint, chunk, said) => {
    const { pieces, ends, ended } = beginStream(endpoint, {}, 0);
    if (endpoint === "endless") {
      await expect.poll(() => pieces.length).toBe(WINDOW_PIECES);
    }
    const forging = begin("forge", forged(chunks({ data: "1", ...chunk })));
    expect(await endOf(forging)).toEqual({
      kind: "lost",
      message: said,
      alone: false,
      outOfMemory: false,
    });
    await ended;
    expect(ends.length).toBe(1);
  });

  test("that ends a stream with another number of chunks than it sent ends", async () => {
    const { pieces, ended } = beginStream("endless", {}, 0);
    await expect.poll(() => pieces.length).toBe(WINDOW_PIECES);
    begin("forge", forged(results({ id: 1, result: "33" })));
    const message = "it ended call 1 with other chunks than it sent";
    expect(await ended).toEqual({ kind: "lost", message, alone: false, outOfMemory: false });
  });

  test("that exits while it streams loses the call", async () => {
    const { pieces, ended } = beginStream("endless", {}, 0);
    await expect.poll(() => pieces.length).toBe(WINDOW_PIECES);
    begin("exit");
    expect(await ended).toEqual({
      kind: "lost",
      message: "it exited with code 3",
      alone: false,
      outOfMemory: false,
    });
  });
}
