/** A worker whose GPU cannot be used any more ends, so that later calls do not pay for it. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchersFor } from "../../../src/pool/launchers.ts";
import { leftOut } from "../../needed.ts";
import { kernelSandbox, skipped as noSandbox } from "../../pool/sandbox/available.ts";
import { pythonMissing } from "../clients/python-environment.ts";
import type { Hosting } from "../deployments/hosting.ts";
import { fixture, hostedPython } from "./hosted.ts";

const skipped = noSandbox || leftOut(pythonMissing);

describe.skipIf(skipped)(`a service whose GPU is lost${skipped}`, () => {
  let hosting: Hosting;
  beforeAll(async () => {
    hosting = await hostedPython(fixture("lost_device.py"), launchersFor(kernelSandbox()));
  }, 300_000);
  afterAll(() => hosting?.[Symbol.asyncDispose]());

  it("goes on where only its memory is full", async () => {
    const before = await hosting.call("say");
    await expect(hosting.call("fill")).rejects.toThrow("CUDA out of memory");
    expect(await hosting.call("say")).toBe(before);
  });

  it("loses the worker of the call, says why in its log, and serves the next call", async () => {
    await expect(hosting.call("assert_there")).rejects.toThrow(/exited with code 71/);
    await expect
      .poll(() => hosting.call("say").catch(() => -1), { timeout: 20_000 })
      .toBeGreaterThan(0);
    const taskId = await hosting.submit("learn");
    expect(await hosting.ended(taskId)).toMatchObject({ status: "success", value: "learnt" });
    const lines = hosting.lines.map(({ line }) => line).join("\n");
    expect(lines).toContain("device-side assert triggered");
    expect(lines).toContain("this process cannot use its GPU any more, and ends");
  });
});
