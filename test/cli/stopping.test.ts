import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { expect, it } from "vitest";

const STOPPING = new URL("../../src/cli/stopping.ts", import.meta.url).href;

/** A process that stops so, with something open that never ends. */
async function stopping(stop: string, graceMs: number) {
  const program = `
    import { stopWithin } from ${JSON.stringify(STOPPING)};
    const open = setInterval(() => {}, 1_000);
    await stopWithin(50, async () => { ${stop} }, ${graceMs});
  `;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    stdio: ["ignore", "ignore", "pipe"],
    timeout: 30_000,
  });
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, "close")]);
  return { code, stderr };
}

it("a stop that does not end is given up a grace period after the drain", async () => {
  const { code, stderr } = await stopping("await new Promise(() => {});", 50);
  expect(code).toBe(1);
  expect(stderr).toContain("it has not stopped after 0.1 s, and ends now");
});

it("what is left open after a stop ends then, too, and is named", async () => {
  const { code, stderr } = await stopping("", 50);
  expect(code).toBe(1);
  expect(stderr).toContain("still open: Timeout");
});

it("a stop that ends holds nothing up until the grace period is over", async () => {
  const ended = await stopping("clearInterval(open);", 600_000);
  expect(ended).toEqual({ code: 0, stderr: "" });
});
