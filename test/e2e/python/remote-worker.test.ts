/** A worker in Python on another machine does what every worker does. */
import { readFile } from "node:fs/promises";
import { beforeAll } from "vitest";
import type { BuiltArtifact } from "../../../src/artifacts/build-options.ts";
import { indexFiles } from "../../../src/artifacts/content.ts";
import { createIndex, digestOf, LOCK_NAME, writeIndex } from "../../../src/artifacts/index-file.ts";
import { openService } from "../../../src/artifacts/open.ts";
import type { PythonOptions } from "../../../src/artifacts/python/interpreter.ts";
import { launchAlone } from "../../../src/pool/launch/alone.ts";
import { pythonProgram } from "../../../src/pool/launch/python.ts";
import { launchersFor } from "../../../src/pool/launchers.ts";
import { leftOut } from "../../needed.ts";
import { startLocal } from "../../pool/local-workers.ts";
import { REMOTE_SKIPS, remoteWorkers } from "../../pool/remote-workers.ts";
import { workerContract } from "../../pool/worker-contract.ts";
import { servicePath } from "../../worker/process.ts";
import { pythonMissing } from "../clients/python-environment.ts";
import { serviceInterpreter } from "./interpreter.ts";

const ENTRY = "contract.py";

const skipped = leftOut(pythonMissing);
let python: PythonOptions;
let built: Promise<BuiltArtifact>;

beforeAll(async () => {
  if (skipped) {
    return;
  }
  python = await serviceInterpreter();
  built = build(python.named ?? "");
}, 300_000);

/** The artifact, whose manifest is what a worker on this machine says. */
async function build(interpreter: string): Promise<BuiltArtifact> {
  const path = servicePath(`serve/${ENTRY}`);
  const start = startLocal(
    (options) => launchAlone(pythonProgram({ ...python, interpreter }))(options),
    () => openService(path, python),
  );
  const local = await start(`serve/${ENTRY}`);
  const manifest = await local.load();
  await local.stop();
  const files = new Map([
    [ENTRY, await readFile(path)],
    [LOCK_NAME, Buffer.alloc(0)],
  ]);
  const facts = { entry: ENTRY, python: { version: "3.11" } };
  const index = createIndex(manifest, await indexFiles(files), facts);
  return { index, digest: digestOf(writeIndex(index)), files, warnings: [] };
}

const { start, processEnded } = remoteWorkers(() => built, {
  launchOf: launchersFor(),
  // The packages are those of the tests: what makes environments has tests of its own.
  environments: {
    hold: async () => ({
      python: python.named ?? "",
      files: [],
      verify: async () => {},
      release() {},
    }),
  },
});

workerContract("a worker in Python on another machine", start, {
  skipped,
  skip: REMOTE_SKIPS,
  processEnded,
});
