import { Readable } from "node:stream";
import { expect, it } from "vitest";
import { readArguments } from "../../../src/cli/call/arguments.ts";
import { bodyOf } from "../../../src/client/arguments.ts";

/** What the command line sends for these arguments. */
async function sent(given: readonly string[], stdin = ""): Promise<unknown> {
  const stream = Readable.from([stdin]) as unknown as NodeJS.ReadStream;
  return bodyOf(await readArguments(given, stream)).make();
}

it("numbers of arguments are sent as they were written", async () => {
  const written = '{"a":9007199254740993,"b":[1.0,-0.0,1e400,1E5],"c":"1.0"}';
  expect(await sent([written])).toBe(written);
  expect(await sent(["-"], written)).toBe(written);
  expect(await sent(["a=18446744073709551615", "b=1.0", "c=x", "b=2"])).toBe(
    '{"a":18446744073709551615,"b":[1.0,2],"c":"x"}',
  );
});
