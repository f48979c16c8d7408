/** The code of a service in Python: its sources, and the environment with its packages. */
import { text } from "node:stream/consumers";
import type {
  EnvironmentProgress,
  Environments,
  HeldEnvironment,
} from "../artifacts/environments/environment.ts";
import {
  type ArtifactIndex,
  type IndexedFile,
  LOCK_NAME,
  type PythonFacts,
} from "../artifacts/index-file.ts";
import { vendoredWheels } from "../artifacts/python/wheels.ts";
import type { PythonCode } from "../pool/options.ts";
import type { HeldArtifact } from "./artifact-cache.ts";

export interface HoldingOptions {
  readonly environments: Environments;
  readonly organizationId: string;
  /** Memory of one of its workers. */
  readonly memoryBytes: number;
  readonly progress: EnvironmentProgress;
}

/**
 * Holds the environment of an artifact in Python. Rejects with an `EnvironmentError` when it
 * cannot be made here.
 */
export async function holdEnvironment(
  { index, openFile }: Pick<HeldArtifact, "index" | "openFile">,
  python: PythonFacts,
  { environments, organizationId, memoryBytes, progress }: HoldingOptions,
): Promise<HeldEnvironment> {
  const wheels = vendoredWheels(index, openFile);
  const spec = {
    lock: await text(openFile(lockOf(index))),
    python: python.version,
    organizationId,
    memoryBytes,
    ...(wheels.length > 0 && { wheels }),
  };
  return environments.hold(spec, progress);
}

/** What workers run, in an environment that is held. */
export function pythonCode(
  { servicePath, index, readCode }: Pick<HeldArtifact, "servicePath" | "index" | "readCode">,
  { module, object }: PythonFacts,
  environment: HeldEnvironment,
): PythonCode {
  const folder = servicePath.slice(0, -index.entry.length - 1);
  return {
    ...(module === undefined ? { module: servicePath } : { module, folder }),
    ...(object !== undefined && { name: object }),
    interpreter: environment.python,
    env: {},
    files: [...environment.files, folder],
    verify: async () => {
      await environment.verify();
      await readCode();
    },
  };
}

function lockOf({ files }: ArtifactIndex): IndexedFile {
  const found = files.find(({ path }) => path === LOCK_NAME);
  if (found === undefined) {
    throw new Error(`the artifact has no ${LOCK_NAME}`);
  }
  return found;
}
