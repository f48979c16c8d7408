/** Many callers that do not read what they asked for, beside one that waits for its answer. */
import { afterAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { Program } from "../cli/program.ts";
import { pythonMissing } from "../clients/python-environment.ts";
import { serviceInterpreter } from "../python/interpreter.ts";
import { fixture } from "./served.ts";

const READERS = 90;
const MIB = 1024 ** 2;

const python = leftOut(pythonMissing);
const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());

async function start(file: string, ...args: string[]): Promise<string> {
  const { program, url } = await Program.serve([fixture(file), "--workers", "1", ...args]);
  stack.use(program);
  return url;
}

const startPython = async (): Promise<string> =>
  start("streaming.py", "--python", (await serviceInterpreter()).named ?? "");

describe.each([
  ["in Node", "", () => start("streaming.ts"), "fill"],
  ["in Python, on its event loop", python, startPython, "fill"],
  ["in Python, in threads", python, startPython, "fill_in_threads"],
])("a worker %s", (_, skipped, open, endpoint) => {
  it.skipIf(skipped)(
    `holds no more than a window of pieces for each slow reader, and answers others${skipped}`,
    { timeout: 120_000 },
    async () => {
      const url = await open();
      const post = (path: string, values: object, signal?: AbortSignal) =>
        fetch(`${url}/${path}`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(values),
          ...(signal && { signal }),
        });
      const peak = async () => Number(await (await post("peak", {})).text());
      const before = await peak();
      const leaving = new AbortController();
      const asked = { name: "a", characters: 200_000 };
      const answers = Array.from({ length: READERS }, () => post(endpoint, asked, leaving.signal));
      const waits: number[] = [];
      let begun = 0;
      const all = Promise.all(answers.map((answer) => answer.then(() => (begun += 1))));
      while (begun < READERS || waits.length < 20) {
        const startMs = performance.now();
        expect(await (await post("whole", {})).text()).toContain("whole");
        waits.push(performance.now() - startMs);
      }
      await all;
      expect(Math.max(...waits)).toBeLessThan(3_000);
      expect((await peak()) - before).toBeLessThan(150 * MIB);
      leaving.abort();
    },
  );
});
