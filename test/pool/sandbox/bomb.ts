/** Starts a program in the sandbox that starts others until it is refused, and prints what it says. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { launchSandboxed } from "../../../src/pool/launch/sandboxed.ts";
import { DEFAULT_LIMITS } from "../../../src/pool/limits.ts";
import { findSandbox } from "../../../src/pool/sandbox/sandbox.ts";

/** Each process of Node has some threads, which count too. */
const BOMB = `
  const { spawn } = require("node:child_process");
  let started = 0;
  const next = () => {
    const child = spawn(process.execPath, ["-e", "setTimeout(() => {}, 60_000)"]);
    child.once("error", ({ code }) => { console.log(JSON.stringify({ started, code })); process.exit(); });
    child.once("spawn", () => { started += 1; started > 500 ? child.emit("error", {}) : next(); });
  };
  next();`;

const sandbox = await findSandbox("kernel", process.env.PATH ?? "");
const scratchFolder = mkdtempSync(join(realpathSync(tmpdir()), "tessera-bomb-"));
const node = realpathSync(process.execPath);
try {
  if (sandbox.level !== "kernel") {
    throw new Error("there is no kernel's sandbox here");
  }
  const launch = launchSandboxed(sandbox, () => ({
    command: [node, "-e", BOMB],
    env: {},
    files: [node],
  }));
  const { child } = launch({
    rights: { read: [], write: [], addons: false, threads: false, processes: true, sqlite: false },
    scratchFolder,
    env: {},
    limits: { ...DEFAULT_LIMITS, memoryBytes: 4 * 1024 ** 3, processes: 4 },
    egress: undefined,
  });
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) {
    throw new Error("it has no output");
  }
  const [said, complaint] = await Promise.all([text(stdout), text(stderr)]);
  process.stdout.write(said || JSON.stringify({ complaint }));
} finally {
  rmSync(scratchFolder, { recursive: true, force: true });
}
