/** The kernel sandbox of this machine, for tests that need it. */
import { findSandbox, type KernelSandbox } from "../../../src/pool/sandbox/sandbox.ts";
import { leftOut } from "../../needed.ts";

const found = await findSandbox("auto", process.env.PATH ?? "");

/** What to add to the names of the tests; empty where the machine has a kernel sandbox. */
export const skipped: string = leftOut(found.level === "permission" ? found.shortfall : undefined);

/** Not installed by anything, so that CI leaves it out as well. */
export const withoutGroups: string =
  found.memoryGroups === undefined ? ` (skipped: ${found.memoryHeldBy})` : "";

/** Call it in tests that are not left out. */
export function kernelSandbox(): KernelSandbox {
  if (found.level !== "kernel") {
    throw new Error("this machine has no kernel sandbox");
  }
  return found;
}
