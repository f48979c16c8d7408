import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it } from "vitest";
import { lockGpu } from "../../../src/pool/gpus/nvidia-smi.ts";

const UUID = `GPU-${crypto.randomUUID()}`;
const isLocked = (): boolean => {
  using lock = lockGpu(UUID);
  return lock === undefined;
};

it.skipIf(process.platform !== "linux")(
  "a GPU is locked by one process at a time, until that gives it up or dies",
  async () => {
    const lock = lockGpu(UUID);
    expect(isLocked()).toBe(true);
    lock?.[Symbol.dispose]();
    expect(isLocked()).toBe(false);
    const program = `
      import { lockGpu } from ${JSON.stringify(import.meta.resolve("../../../src/pool/gpus/nvidia-smi.ts"))};
      console.log(lockGpu(${JSON.stringify(UUID)}) !== undefined);
      setInterval(() => {}, 1_000);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [said] = await once(child.stdout, "data");
    expect(String(said)).toBe("true\n");
    expect(isLocked()).toBe(true);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(isLocked()).toBe(false);
  },
);
