import { expect, it } from "vitest";
import { kernelSandbox, skipped } from "../../pool/sandbox/available.ts";
import { Program, run } from "../cli/program.ts";
import { Folder } from "./platform.ts";

/** A search path on which there is no bubblewrap. */
const WITHOUT = { PATH: "/nonexistent" };

it.skipIf(skipped)(
  `says at its start, in its readiness and in its check that the kernel holds workers${skipped}`,
  async () => {
    using folder = new Folder();
    await using program = new Program(["start", "--port", "0", "--data", folder.data]);
    const [, port = ""] = await program.says("stdout", / runs on http:\/\/localhost:(\d+)\n/);
    expect(program.stdout).toMatch(/^ {2}sandbox {4}kernel: /m);
    const readiness = await fetch(`http://127.0.0.1:${port}/readyz?verbose`);
    expect(await readiness.json()).toEqual({
      status: "ready",
      sandbox: "kernel",
      memory: kernelSandbox().memoryHeldBy,
    });
    expect(program.stdout).toContain(`  memory     ${kernelSandbox().memoryHeldBy}\n`);
    await program.stop();
    const args = ["admin", "check", "--data", folder.data];
    const { code, stdout } = await run([...args, "--output", "json"]);
    expect(JSON.parse(stdout)).toEqual(
      expect.arrayContaining([
        { name: "sandbox", result: "ok", detail: expect.stringMatching(/^kernel: \/.*bwrap/) },
        { name: "database", result: "ok", detail: "it answers, and is whole; organizations: 0" },
      ]),
    );
    expect(code).toBe(0);
  },
);

it("starts without bubblewrap, and says what that means and what to install", async () => {
  using folder = new Folder();
  const args = ["start", "--port", "0", "--data", folder.data];
  await using program = new Program(args, { env: WITHOUT });
  await program.says("stdout", /Ctrl-C stops/);
  expect(program.stdout).toMatch(/sandbox {4}permission: .* deploy only code that you trust/);
  expect(program.stdout).toContain("install the package bubblewrap");
});

it("does not start without the kernel's sandbox where it was asked for", async () => {
  using folder = new Folder();
  const args = ["--data", folder.data, "--sandbox", "kernel"];
  const { code, stderr } = await run(["start", "--port", "0", ...args], { env: WITHOUT });
  expect(stderr).toMatch(/--sandbox kernel: bubblewrap is not installed: install the package/);
  expect(code).toBe(1);
  const check = await run(["admin", "check", ...args], { env: WITHOUT });
  expect(check.stdout).toMatch(/^sandbox +failed +--sandbox kernel: bubblewrap is not installed/m);
  expect(check.code).toBe(1);
});
