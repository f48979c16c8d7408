import { spawn } from "node:child_process";
import { expect, test } from "vitest";

/** Makes garbage, lies idle, and prints when V8 first thinks of giving memory back. */
const IDLE = `
  const { keepCompiledCode } = await import(process.argv[1]);
  keepCompiledCode(Number(process.argv[2]));
  let garbage = Array.from({ length: 1_000_000 }, (_, at) => ({ at }));
  garbage = undefined;
  gc();
  setInterval(() => {}, 1_000);
`;

/** When V8 has considered it, in milliseconds since the process began. */
const PUT_OFF = /(\d+) ms: Memory reducer/;

test("V8 takes from us when it gives memory back, instead of doing it after 8 s", async () => {
  const module = new URL("../bin/keep-compiled-code.js", import.meta.url).href;
  const flags = ["--trace-memory-reducer", "--expose-gc", "--input-type=module"];
  const child = spawn(process.execPath, [...flags, "-e", IDLE, module, "20"]);
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
