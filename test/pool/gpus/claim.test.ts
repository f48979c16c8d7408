import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it } from "vitest";
import { claimGpu } from "../../../src/pool/gpus/claim.ts";

const UUID = `GPU-${crypto.randomUUID()}`;
const isClaimed = (): boolean => {
  using claim = claimGpu(UUID);
  return claim === undefined;
};

it.skipIf(process.platform !== "linux")(
  "a GPU is claimed by one process at a time, until that gives it up or dies",
  async () => {
    const claim = claimGpu(UUID);
    expect(isClaimed()).toBe(true);
    claim?.[Symbol.dispose]();
    expect(isClaimed()).toBe(false);
    const program = `
      import { claimGpu } from ${JSON.stringify(import.meta.resolve("../../../src/pool/gpus/claim.ts"))};
      console.log(claimGpu(${JSON.stringify(UUID)}) !== undefined);
      setInterval(() => {}, 1_000);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [said] = await once(child.stdout, "data");
    expect(String(said)).toBe("true\n");
    expect(isClaimed()).toBe(true);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(isClaimed()).toBe(false);
  },
);
