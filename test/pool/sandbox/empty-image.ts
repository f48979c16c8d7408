/** An image with nothing in it, as it is unpacked. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { machineLibraries } from "../../../src/pool/sandbox/bubblewrap.ts";
import { fitLibraries, type WorkerImage } from "../../../src/pool/sandbox/image.ts";

/** Makes it in a folder that is made, too. */
export async function emptyImage(root: string): Promise<WorkerImage> {
  for (const name of ["dev", "proc", "run", "sys", "tmp", "etc"]) {
    mkdirSync(join(root, name), { recursive: true });
  }
  const machine = machineLibraries();
  if (machine === undefined) {
    throw new Error("this machine has no GNU C library");
  }
  return { root, variables: {}, libraries: await fitLibraries(root, machine) };
}
