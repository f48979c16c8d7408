/** The kernel bounds the processes and threads of a worker, whoever runs the node. */
import { execFile, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { DEFAULT_LIMITS, maxTasksOf } from "../../../src/pool/limits.ts";
import { skipped, withoutGroups } from "./available.ts";

const BOMB = join(import.meta.dirname, "bomb.ts");
const isRoot = process.geteuid?.() === 0;
/** Somebody without rights or processes on this machine. */
const SOMEBODY = ["setpriv", "--reuid", "61234", "--regid", "61234", "--clear-groups"];
const notSomebody = becomesSomebody() ? "" : " (skipped: nobody else can run Node here)";

/** Node and its files may be in a folder that only their owner reads. */
function becomesSomebody(): boolean {
  const [program = "", ...args] = [...SOMEBODY, process.execPath, "--check", BOMB];
  return isRoot && spawnSync(program, args).status === 0;
}

async function bomb(...as: readonly string[]): Promise<{ started: number; code: string }> {
  const home = mkdtempSync(join(tmpdir(), "tessera-somebody-"));
  try {
    chmodSync(home, 0o777);
    const [program = "", ...args] = [...as, process.execPath, BOMB];
    const env = { ...process.env, TMPDIR: home, HOME: home };
    const { stdout } = await promisify(execFile)(program, args, { env });
    return JSON.parse(stdout);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

const most = maxTasksOf({ ...DEFAULT_LIMITS, processes: 4 }) ?? 0;

test.skipIf(skipped || withoutGroups)(
  `a bomb is refused by the control group of its worker${skipped || withoutGroups}`,
  async () => {
    const { started, code } = await bomb();
    expect(code).toBe("EAGAIN");
    expect(started).toBeLessThan(most);
  },
  60_000,
);

test.skipIf(skipped || notSomebody)(
  `a bomb is refused by the limit of its user, where the node is somebody's${skipped || notSomebody}`,
  async () => {
    const { started, code } = await bomb(...SOMEBODY);
    expect(code).toBe("EAGAIN");
    expect(started).toBeLessThan(most);
  },
  60_000,
);
