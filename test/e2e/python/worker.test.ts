/** A worker in Python does what every worker does. */
import { beforeAll } from "vitest";
import { openService } from "../../../src/artifacts/open.ts";
import type { PythonOptions } from "../../../src/artifacts/python/interpreter.ts";
import { launchAlone } from "../../../src/pool/launch/alone.ts";
import { pythonProgram } from "../../../src/pool/launch/python.ts";
import { leftOut } from "../../needed.ts";
import { startLocal } from "../../pool/local-workers.ts";
import { workerContract } from "../../pool/worker-contract.ts";
import { pythonMissing } from "../clients/python-environment.ts";
import { serviceInterpreter } from "./interpreter.ts";

const skipped = leftOut(pythonMissing);
let python: PythonOptions;

beforeAll(async () => {
  if (skipped) {
    return;
  }
  python = await serviceInterpreter();
}, 300_000);

workerContract(
  "a worker in Python",
  startLocal(
    (options) =>
      launchAlone(pythonProgram({ ...python, interpreter: python.named ?? "" }))(options),
    (path) => openService(path.replace(/\.ts$/, ".py"), python),
  ),
  { skipped },
);
