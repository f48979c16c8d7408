import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { writePieces } from "../../../src/cli/call/result.ts";
import { Terminal } from "../../../src/cli/terminal.ts";

/** What is written of pieces to a terminal. */
async function written(pieces: readonly unknown[], isText: boolean): Promise<string> {
  const stdout = Object.assign(new PassThrough(), { isTTY: true });
  const terminal = new Terminal({
    stdin: new PassThrough(),
    stdout,
    stderr: new PassThrough(),
    interactive: true,
    interruption: () => ({ signal: new AbortController().signal, [Symbol.dispose]() {} }),
  });
  const { signal } = new AbortController();
  await writePieces({ terminal, signal }, Readable.from(pieces), { isText });
  stdout.end();
  return text(stdout);
}

test("a streamed text on a terminal ends with a line, and controls nothing", async () => {
  expect(await written(["a\u001b[31m", "b\u0007", "\nc"], true)).toBe("ab \nc\n");
  expect(await written(["a\n"], true)).toBe("a\n");
});

test("other streamed values are a line of JSON each", async () => {
  expect(await written(["a", { b: 1 }], false)).toBe('"a"\n{"b":1}\n');
});
