/** What `tessera build` and `tessera deploy` share: options for Python, and words for the steps. */
import type { BuildOptions, BuildStep, BuiltArtifact } from "../../artifacts/build-options.ts";
import { option } from "../command.ts";

/** How a service in Python is built. */
export interface PythonFlags {
  readonly python?: string;
  readonly vendor?: boolean;
  readonly buildFromSource?: readonly string[];
}

export const PYTHON_OPTIONS = [
  option(
    "--python <path>",
    "interpreter whose version a service in Python is for (default: that of its environment, or python3)",
  ),
  option(
    "--vendor",
    "put the packages of a service in Python into the artifact, for a platform that reaches no package index",
  ),
  option(
    "--build-from-source <name...>",
    "build these packages of a service in Python here, which runs their code, because they have no wheel; implies --vendor",
  ),
];

/** Builds a service; `main.ts` adds what the environment says. */
export type Build = (
  path: string,
  options: Omit<BuildOptions, "python">,
  flags: PythonFlags,
) => Promise<BuiltArtifact>;

export const BUILD_STEPS: Readonly<Record<BuildStep, string>> = {
  compile: "compiling",
  trace: "looking for the files that it reads",
  lock: "locking its packages",
  install: "installing its packages",
  load: "loading it in a worker",
};
