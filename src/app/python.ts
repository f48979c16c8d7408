/** What a node runs services in Python with: its interpreters, and the environments on its disk. */
import { join } from "node:path";
import {
  findInterpreters,
  type PythonInterpreter,
} from "../artifacts/environments/interpreters.ts";
import { EnvironmentStore } from "../artifacts/environments/store.ts";
import { findUv } from "../artifacts/environments/uv.ts";
import { Images } from "../artifacts/images/images.ts";
import { Layers } from "../artifacts/layers/layers.ts";
import { currentPlatform } from "../artifacts/platform.ts";
import type { StartConfig } from "../config/start.ts";
import { programLauncher } from "../pool/launchers.ts";
import type { Sandbox } from "../pool/sandbox/sandbox.ts";
import { takeFolder } from "../storage/own-folder.ts";
import type { Node } from "./node.ts";

/** Services in Python on a node. */
export interface PythonHosting {
  /** Those that the operator named; empty: those on the path are found when one is needed. */
  readonly named: readonly PythonInterpreter[];
  readonly interpreters: () => Promise<readonly PythonInterpreter[]>;
  readonly environments: EnvironmentStore;
  /** The system packages of services; undefined without a sandbox of the kernel. */
  readonly layers: Layers | undefined;
  /** The container images of services, likewise. */
  readonly images: Images | undefined;
}

interface OpenPythonOptions {
  readonly config: Pick<StartConfig, "dataFolder" | "searchPath" | "python" | "allowedEgress">;
  /** Where packages come from; see `runUv`. */
  readonly packages: NodeJS.ProcessEnv;
  readonly sandbox: Sandbox;
}

/**
 * Undefined where services in Python do not run, because nothing holds them. Rejects with one
 * message for a named interpreter that does not run.
 */
export async function openPython(
  { config, packages, sandbox }: OpenPythonOptions,
  { log, now }: Pick<Node, "log" | "now">,
  resources: AsyncDisposableStack,
): Promise<PythonHosting | undefined> {
  const { dataFolder, searchPath, python, allowedEgress: allowed } = config;
  const isNamed = python.interpreters.length > 0;
  const named = isNamed ? await findInterpreters(python.interpreters, searchPath) : [];
  if (python.needsSandbox && sandbox.level !== "kernel") {
    return undefined;
  }
  // It takes a second to ask all of them, so not before it is needed.
  let found: Promise<readonly PythonInterpreter[]> | undefined;
  const interpreters = () =>
    (found ??= isNamed ? Promise.resolve(named) : findInterpreters([], searchPath));
  const { path: folder } = resources.use(await takeFolder(join(dataFolder, "environments")));
  const environments = new EnvironmentStore({
    folder,
    interpreters,
    uv: (interpreter, signal) =>
      findUv({
        named: python.uv,
        // Beside the environments, and not among them: it is a program that the node runs.
        folder: join(dataFolder, "uv"),
        platform: currentPlatform(),
        interpreter,
        env: packages,
        signal,
      }),
    env: packages,
    launch: programLauncher(sandbox),
    maxBytesPerOrganization: python.maxBytesPerOrganization,
    log,
    now,
  });
  await environments.start();
  const hosted = { named, interpreters, environments };
  if (sandbox.level !== "kernel") {
    return { ...hosted, layers: undefined, images: undefined };
  }
  const { folders } = environments;
  const { maxBytesPerOrganization } = python;
  const common = { searchPath, env: packages, now };
  const layers = new Layers({ ...common, folders, aptFolder: join(folder, "apt") });
  const images = new Images({
    ...{ ...common, sandbox, allowed, maxBytesPerOrganization, log },
    folder: join(folder, "images"),
  });
  await images.start();
  return { ...hosted, layers, images };
}
