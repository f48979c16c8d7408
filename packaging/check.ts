/**
 * Tries what is shipped: `npm run package:check -- [--changed] [--list] [--part NAME]`.
 *
 * Each part runs where its programs are installed, and says loudly where they are not.
 * packaging/checked.json has a digest of what each part was tried with, written when it
 * passes: commit it. With --changed, as in CI, a part runs only where its digest is
 * another one, however many commits ago that changed; it is an error where its programs
 * are missing then. --list says what would run, and ends with 1 if anything would.
 * TESSERA_KUBERNETES names a folder of packaging/kubernetes/build.sh.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { documentedBlocks } from "../test/e2e/docs/blocks.ts";
import { digestOf, type Inputs, readRecord, writeRecord } from "./checked.ts";
import { buildImage } from "./image/build.ts";
import { tryCommands } from "./image/commands.ts";
import type { System } from "./image/context.ts";
import { type Block, means, PYTHON, SMALL } from "./image/documented.ts";
import { smoke } from "./image/smoke.ts";
import { ROOT } from "./program.ts";
import { tryRelease } from "./release/try.ts";
import { isInstalled, run } from "./run.ts";

/** Of the compressed layers; that with Python has 93 MB. */
const MAX_IMAGE_BYTES = { small: 80_000_000, python: 110_000_000 };

interface Part extends Inputs {
  readonly name: string;
  /** What it lacks here; undefined where it can run. */
  readonly missing: string | undefined;
  run(): void | Promise<void>;
}

const lacks = (...programs: readonly string[]): string | undefined => {
  const missing = programs.filter((program) => !isInstalled(program));
  return missing.length > 0 ? `${missing.join(", ")} not installed` : undefined;
};

/** The commands that run with the image: a change of other parts of the pages is none of it. */
const commandsOf = (entries: readonly Block[]): readonly string[] =>
  documentedBlocks().flatMap((block) =>
    entries.some((entry) => means(entry, block)) ? [block.text] : [],
  );

function imagePart(system: System, blocks: readonly Block[], ...more: readonly string[]): Part {
  const programs = [
    "buildah",
    "podman",
    "runc",
    "iptables",
    "ldd",
    "ip",
    "unshare",
    "curl",
    ...more,
  ];
  return {
    name: system === "python" ? "image with Python" : "image",
    missing: process.getuid?.() === 0 ? lacks(...programs) : "needs to run as root",
    files: ["packaging/image", "packaging/program.ts", "packaging/run.ts", "package-lock.json"],
    texts: () => commandsOf(blocks),
    run: () => tryImage(system),
  };
}

const kubernetes = process.env.TESSERA_KUBERNETES;

const PARTS: readonly Part[] = [
  {
    name: "chart at a real API server",
    missing: kubernetes ? lacks("helm", "etcd", "openssl") : "TESSERA_KUBERNETES is not set",
    files: ["charts", "packaging/kubernetes"],
    run: () => void run(join(ROOT, "packaging/kubernetes/try.sh"), [kubernetes ?? ""]),
  },
  {
    name: "release",
    missing: lacks("minisign", "python3", "sha256sum"),
    files: [
      ...["packaging/release", "packaging/tarball", "packaging/client", "packaging/program.ts"],
      ...["packaging/run.ts", "clients/python/pyproject.toml", "package-lock.json"],
    ],
    run: tryRelease,
  },
  imagePart("small", SMALL),
  imagePart("python", PYTHON, "mmdebstrap", "python3"),
];

/** Its size, the same digest twice, as an operator uses it, and the commands of the documents. */
async function tryImage(system: System): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "tessera-check-"));
  try {
    const first = buildImage(system, join(folder, "first"));
    if (first.bytes > MAX_IMAGE_BYTES[system]) {
      throw new Error(`the image has ${first.bytes} bytes, more than ${MAX_IMAGE_BYTES[system]}`);
    }
    const second = buildImage(system, join(folder, "second"));
    if (first.digest !== second.digest) {
      throw new Error(`two builds differ: ${first.digest}, ${second.digest}`);
    }
    await smoke(first.archive, system);
    tryCommands(first.archive, system);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const say = (text: string): void => void process.stdout.write(`package:check: ${text}\n`);

const { values } = parseArgs({
  options: {
    changed: { type: "boolean", default: false },
    list: { type: "boolean", default: false },
    part: { type: "string" },
  },
});
const { changed, list, part } = values;
const chosen = PARTS.filter(({ name }) => part === undefined || name === part);
if (chosen.length === 0) {
  throw new Error(`--part takes one of: ${PARTS.map(({ name }) => name).join(", ")}`);
}
for (const one of chosen) {
  const digest = digestOf(one);
  if (changed && readRecord()[one.name] === digest) {
    say(`as it was when it was tried: ${one.name}`);
  } else if (list) {
    say(`would run: ${one.name}${one.missing === undefined ? "" : ` (${one.missing})`}`);
    process.exitCode = 1;
  } else if (one.missing === undefined) {
    await one.run();
    writeRecord(one.name, digest);
    say(`ok ${one.name}`);
  } else if (changed) {
    say(`FAILED ${one.name}: it has changed since it was tried, and ${one.missing}`);
    say(
      `  try it where its programs are (npm run package:check), and commit packaging/checked.json`,
    );
    process.exitCode = 1;
  } else {
    say(`SKIPPED ${one.name}: ${one.missing}`);
  }
}
