import { expect, it } from "vitest";
import { giveBack, readAtMost, textBetween } from "../../src/collections/bytes.ts";

it("bytes that are given back are empty", () => {
  const bytes = Buffer.allocUnsafeSlow(100_000);
  const view = new Uint8Array(bytes.buffer);
  giveBack(bytes);
  expect([bytes.length, view.length]).toEqual([0, 0]);
});

it("bytes that are a part of something else stay as they are", () => {
  const whole = Buffer.alloc(100_000, "x");
  giveBack(whole.subarray(0, 50_000));
  giveBack(whole.subarray(50_000));
  const few = Buffer.from("few");
  giveBack(few);
  const shared = new Uint8Array(new SharedArrayBuffer(100_000)).fill(1);
  giveBack(shared);
  expect(whole.toString()).toBe("x".repeat(100_000));
  expect(few.toString()).toBe("few");
  expect(shared).toHaveLength(100_000);
});

it("long texts are read as they were written, whatever characters they have", () => {
  for (const character of ["a", "é", "語", "😀"]) {
    const text = `(${character.repeat(100_000)})`;
    const bytes = Buffer.from(text);
    expect(textBetween(bytes, 0, bytes.length) === text).toBe(true);
    expect(textBetween(bytes, 1, bytes.length - 1) === text.slice(1, -1)).toBe(true);
  }
});

it("a stream is read up to a bound, and ended where it has more", async () => {
  let ended = 0;
  async function* pieces() {
    try {
      yield Buffer.from("one");
      yield Buffer.from("zwölf");
    } finally {
      ended += 1;
    }
  }
  expect(String(await readAtMost(pieces(), 9))).toBe("onezwölf");
  expect(await readAtMost(pieces(), 8)).toBeUndefined();
  expect(ended).toBe(2);
  expect(await readAtMost((async function* () {})(), 0)).toHaveLength(0);
});
