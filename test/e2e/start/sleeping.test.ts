import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { Program } from "../cli/program.ts";
import { Folder, start } from "./platform.ts";
import { makeSleepers } from "./sleeping.ts";

const SLEEPERS = 1_000;

/** The most that V8 may take for objects that live long: a node that needs more ends. */
const MAX_HEAP_MIB = 128;

/** Resident memory and processor time of a process so far, which do not depend on how busy the machine is. */
function usedBy(pid: number): { readonly mebibytes: number; readonly seconds: number } {
  const [, kilobytes] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const seconds = (Number(fields[11]) + Number(fields[12])) / 100;
  return { mebibytes: Number(kilobytes) / 1_024, seconds };
}

it.runIf(process.platform === "linux")(
  "a node with 1,000 sleeping deployments starts within a small heap, and they take little",
  async () => {
    using folder = new Folder();
    const alone = await used(folder);
    const platform = await start(folder);
    await platform.setUp();
    await platform[Symbol.asyncDispose]();
    await makeSleepers(folder.data, SLEEPERS);
    const full = await used(folder);
    // From 270 to 330 in one state of the code: it has garbage that V8 had no need to collect.
    expect(full.mebibytes).toBeLessThan(340);
    expect(full.seconds - alone.seconds).toBeLessThan(10);
  },
  240_000,
);

/** What a node uses that has just become ready on this data. */
async function used(folder: Folder) {
  const args = ["start", "--port", "0", "--data", folder.data, "--log-level", "warn"];
  const env = { NODE_OPTIONS: `--max-old-space-size=${MAX_HEAP_MIB}` };
  await using program = new Program(args, { cwd: folder.path, env });
  await program.says("stdout", /Ctrl-C stops/);
  return usedBy(program.pid);
}
