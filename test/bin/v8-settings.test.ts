import { spawn } from "node:child_process";
import { expect, test } from "vitest";

const MODULE = new URL("../../bin/v8-settings.js", import.meta.url).href;

/** Makes garbage, lies idle, and prints when V8 first thinks of giving memory back. */
const IDLE = `
  const { setUpV8 } = await import(process.argv[1]);
  setUpV8({ keptMs: 20 });
  let garbage = Array.from({ length: 1_000_000 }, (_, at) => ({ at }));
  garbage = undefined;
  gc();
  setInterval(() => {}, 1_000);
`;

/** When V8 has considered it, in milliseconds since the process began. */
const PUT_OFF = /(\d+) ms: Memory reducer/;

test("V8 takes from us when it gives memory back, instead of doing it after 8 s", async () => {
  const flags = ["--trace-memory-reducer", "--expose-gc", "--input-type=module"];
  const child = spawn(process.execPath, [...flags, "-e", IDLE, MODULE]);
  try {
    let printed = "";
    for await (const chunk of child.stdout) {
      printed += String(chunk);
      if (PUT_OFF.test(printed)) {
        break;
      }
    }
    const [, afterMs] = PUT_OFF.exec(printed) ?? [];
    expect(Number(afterMs)).toBeLessThan(7_000);
  } finally {
    child.kill("SIGKILL");
  }
});

/** Makes objects that all survive many small collections, in code that is optimised. */
const SURVIVORS = `
  const { setUpV8 } = await import(process.argv[1]);
  if (process.argv[2] === "set up") {
    setUpV8();
  }
  const kept = [];
  const make = (at) => [{ at }, [at, at]];
  for (let at = 0; at < 2_000_000; at += 1) {
    kept[at % 500_000] = make(at);
  }
`;

/** Lines of V8 on code that makes its objects old from then on. */
async function madeOld(how: string): Promise<number> {
  const flags = [
    "--trace-pretenuring",
    "--trace-pretenuring-statistics",
    // Optimised when it has run often enough, and not when a thread finds the time for it: code
    // that is optimised before V8 has seen its objects survive never makes them old.
    "--no-concurrent-recompilation",
    "--no-use-osr",
    "--input-type=module",
  ];
  const child = spawn(process.execPath, [...flags, "-e", SURVIVORS, MODULE, how]);
  let printed = "";
  for await (const chunk of child.stdout) {
    printed += String(chunk);
  }
  return printed.match(/=> tenure$/gm)?.length ?? 0;
}

test("what calls make is made young, however much of it survives the first collections", async () => {
  expect(await madeOld("as it comes")).toBeGreaterThan(0);
  expect(await madeOld("set up")).toBe(0);
});
