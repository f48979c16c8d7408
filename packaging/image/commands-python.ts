/** The commands of the documents that run with the image that has Python. */
import { strict as assert } from "node:assert";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../program.ts";
import { run } from "../run.ts";
import { CommandTrial, URL } from "./command-trial.ts";

const CALL = `curl ${URL}/summarize --json '{"text": "One. Two.", "sentences": 1}'`;

export async function runPythonCommands(archive: string, environment: string): Promise<void> {
  using trial = new CommandTrial(archive, "python");
  writeProject(trial.work, environment);
  for (const [page, start] of [
    ["README.md", "npx tessera serve service.py"],
    ["docs/coming-from-bentoml.md", "npx tessera"],
    ["docs/python-services.md", "npx tessera serve"],
  ] as const) {
    // One a line, of which each runs until it is stopped.
    for (const line of trial.block(page, start).trim().split("\n")) {
      await using _served = await trial.serve(line.replace(/ +#.*/, ""));
      assert.equal(trial.run(CALL), "One.");
    }
  }
  await trial.install("npm run package:image -- --python");
  const check = trial.run("podman exec tessera tessera admin check --sandbox kernel");
  assert.match(check, /kernel: \S+ holds the workers/);
  trial.finish();
}

/** A service with its packages in `.venv`, which the Python of the image finds there. */
function writeProject(folder: string, environment: string): void {
  cpSync(join(ROOT, "packaging/image/trial"), folder, { recursive: true });
  run("cp", ["-a", environment, join(folder, ".venv")]);
  run("chmod", ["-R", "a+rX", folder]);
}
