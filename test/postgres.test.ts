import { spawnSync } from "node:child_process";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";

const USED = new URL("postgres.ts", import.meta.url).href;

function run(program: string) {
  const args = ["--input-type=module", "--eval", program];
  return spawnSync(process.execPath, args, { encoding: "utf8" });
}

function accepts(port: number, host: string): Promise<boolean> {
  const socket = connect(port, host);
  return new Promise((resolve) => {
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
  }).finally(() => socket.destroy()) as Promise<boolean>;
}

describe("the Postgres of the tests", () => {
  it("leaves the exit code of the process that uses it as it is", () => {
    const program = `const { startPostgres } = await import(${JSON.stringify(USED)});
      await (await startPostgres())[Symbol.asyncDispose]();
      process.exitCode = 3;`;
    const { status, stderr } = run(program);
    expect({ status, stderr }).toEqual({ status: 3, stderr: "" });
  });

  it("ends with a process that does not end it", async () => {
    const program = `const { startPostgres } = await import(${JSON.stringify(USED)});
      process.stdout.write((await startPostgres()).url);
      process.exit(0);`;
    const { stdout } = run(program);
    expect(stdout).toMatch(/^postgres:/);
    const { hostname, port } = new URL(stdout);
    await expect.poll(() => accepts(Number(port), hostname)).toBe(false);
  });
});
