/**
 * Tries what is shipped: `npm run package:check -- [--changed-since COMMIT]`.
 *
 * Each part runs where its programs are installed, and says loudly where they are
 * not. With --changed-since, nothing runs where packaging is as it was then.
 * TESSERA_KUBERNETES names a folder of packaging/kubernetes/build.sh.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildImage } from "./image/build.ts";
import { smoke } from "./image/smoke.ts";
import { ROOT } from "./program.ts";
import { isInstalled, run } from "./run.ts";

const MAX_IMAGE_BYTES = 80_000_000;
const INPUTS = ["packaging", "charts", "bin", "package.json", "package-lock.json"];

interface Part {
  readonly name: string;
  /** What it lacks here; undefined where it can run. */
  readonly missing: string | undefined;
  run(): void | Promise<void>;
}

const lacks = (...programs: readonly string[]): string | undefined => {
  const missing = programs.filter((program) => !isInstalled(program));
  return missing.length > 0 ? `${missing.join(", ")} not installed` : undefined;
};

const kubernetes = process.env.TESSERA_KUBERNETES;

const PARTS: readonly Part[] = [
  {
    name: "chart at a real API server",
    missing: kubernetes ? lacks("helm", "etcd", "openssl") : "TESSERA_KUBERNETES is not set",
    run: () => void run(join(ROOT, "packaging/kubernetes/try.sh"), [kubernetes ?? ""]),
  },
  {
    name: "image: size, same digest twice, as an operator uses it",
    missing:
      process.getuid?.() === 0 ? lacks("buildah", "podman", "runc", "ldd") : "needs to run as root",
    run: tryImage,
  },
];

async function tryImage(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "tessera-check-"));
  try {
    const first = buildImage("small", join(folder, "first"));
    if (first.bytes > MAX_IMAGE_BYTES) {
      throw new Error(`the image has ${first.bytes} bytes, more than ${MAX_IMAGE_BYTES}`);
    }
    const second = buildImage("small", join(folder, "second"));
    if (first.digest !== second.digest) {
      throw new Error(`two builds differ: ${first.digest}, ${second.digest}`);
    }
    await smoke(first.archive, "small");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const { values } = parseArgs({ options: { "changed-since": { type: "string" } } });
const since = values["changed-since"];
const diff =
  since === undefined
    ? undefined
    : spawnSync("git", ["diff", "--quiet", since, "--", ...INPUTS], { cwd: ROOT }).status;
if (diff === 0) {
  process.stdout.write(`package:check: SKIPPED, packaging is as it was at ${since}\n`);
} else {
  for (const { name, missing, run: attempt } of PARTS) {
    if (missing !== undefined) {
      process.stdout.write(`package:check: SKIPPED ${name}: ${missing}\n`);
      continue;
    }
    await attempt();
    process.stdout.write(`package:check: ok ${name}\n`);
  }
}
