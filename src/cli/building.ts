/** What `tessera build` and `tessera deploy` share: options for Python, and words for the steps. */
import type { BuildOptions, BuildStep, BuiltArtifact } from "../artifacts/build-options.ts";
import type { ProgramService } from "../artifacts/program.ts";
import { option } from "./command.ts";
import { parseDuration } from "./durations.ts";
import { usageError } from "./failure.ts";

/** The longest time that a service may be given to load; as for workers. */
export const MAX_READY_TIMEOUT_MS = 24 * 3_600_000;

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

export const READY_TIMEOUT_OPTION = option(
  "--ready-timeout <time>",
  "how long the service may take to load while it is built, such as 10m (default: 2m)",
);

export const PROBE_OPTION = option(
  "--probe <how>",
  "how a service in Python is tried when it is built: import reads what it says of itself, start also constructs it, which may need a GPU or its model",
)
  .choices(["import", "start"])
  .default("import");

/** How the service is tried, as it was typed. */
export function probeOf(text: string | undefined): NonNullable<BuildOptions["probe"]> {
  return text === "start" ? "start" : "import";
}

/** How long the service may take to load, as it was typed. */
export function readyTimeoutOf(text: string | undefined): Pick<BuildOptions, "readyTimeoutMs"> {
  if (text === undefined) {
    return {};
  }
  const readyTimeoutMs = parseDuration("--ready-timeout", text);
  if (readyTimeoutMs < 1_000 || readyTimeoutMs > MAX_READY_TIMEOUT_MS) {
    throw usageError("--ready-timeout must be a time from 1s to 24h, such as 10m");
  }
  return { readyTimeoutMs };
}

/** Builds a service here; how one in Python is built, its flags and the environment say. */
export async function buildService(
  target: string | ProgramService,
  options: Omit<BuildOptions, "python">,
  { flags, env }: { readonly flags: PythonFlags; readonly env: NodeJS.ProcessEnv },
): Promise<BuiltArtifact> {
  const { buildArtifact } = await import("../artifacts/build.ts");
  const { readBuildEnvironment } = await import("../config/build.ts");
  const { python: named, vendor = false, buildFromSource: fromSource = [] } = flags;
  const python = { ...readBuildEnvironment(env), named, vendor, fromSource };
  return await buildArtifact(target, { ...options, python });
}

export const BUILD_STEPS: Readonly<Record<BuildStep, string>> = {
  compile: "compiling",
  trace: "looking for the files that it reads",
  lock: "locking its packages",
  install: "installing its packages",
  read: "reading its files",
  load: "loading it in a worker",
  packages: "locking its system packages",
  image: "asking the registry for its image",
};
