/**
 * The build of a service in Python: its sources, the lock of its packages, and the manifest
 * that it gives when it is imported in an environment made of exactly these.
 *
 * Sources are the `.py` files in its folder and below; everything else is named by
 * `include`. Builds are reproducible as far as the lock is: it names the newest releases
 * that fit, unless a file beside the service pins them.
 */
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launchersFor } from "../../pool/launchers.ts";
import { findSandbox, type Sandbox } from "../../pool/sandbox/sandbox.ts";
import type { ServiceManifest } from "../../protocol/manifest.ts";
import type { ServiceEntry } from "../../protocol/messages.ts";
import {
  type BuildOptions,
  type BuiltArtifact,
  PROBE_READY_TIMEOUT_MS,
  type PythonBuildOptions,
} from "../build-options.ts";
import { type FileSource, indexFiles, isNative, openSource } from "../content.ts";
import { collectWheels } from "../environments/collect.ts";
import type { HeldEnvironment } from "../environments/environment.ts";
import { lockPackages } from "../environments/lock.ts";
import { packageName } from "../environments/requirements.ts";
import { createIndex, digestOf, type IndexedFile, LOCK_NAME, writeIndex } from "../index-file.ts";
import { currentPlatform } from "../platform.ts";
import { probeService } from "../probe.ts";
import { writeFiles } from "../unpack.ts";
import { type PythonSources, pythonSources } from "./sources.ts";
import { openToolchain } from "./toolchain.ts";
import { vendoredWheels, wheelFiles } from "./wheels.ts";

/** Environments of builds that were not used for this long are removed. */
const UNUSED_ENVIRONMENT_TTL_MS = 7 * 24 * 60 * 60 * 1000;

/**
 * Builds the service. Rejects with a `ServiceFileError`, an `EnvironmentError`, or an
 * `ArtifactError` when it does not load.
 */
export async function buildPythonArtifact(
  service: ServiceEntry,
  python: PythonBuildOptions,
  options: BuildOptions,
): Promise<BuiltArtifact> {
  const { include = [], onStep, signal } = options;
  onStep?.("lock");
  const sources = await pythonSources(service, include);
  const { root, entry } = sources;
  const sandbox = await findSandbox("auto", python.searchPath);
  const toolchain = await openToolchain(root, { ...python, sandbox }, signal);
  const { interpreter, run, environments, folder } = toolchain;
  const { version } = interpreter;
  const fromSource = python.fromSource.map(packageName);
  const needed = await lockPackages({ ...run, folder: root, entry, interpreter, fromSource });
  const isVendored = python.vendor || fromSource.length > 0;
  onStep?.("install");
  const { lock, paths } = isVendored
    ? // They stay in the cache, because they are read when the artifact is packed or uploaded.
      await collectWheels({
        ...run,
        ...{ lock: needed.text, interpreter, fromSource },
        // Those of another interpreter have other names, and would be taken for these, too.
        folder: join(
          folder,
          "wheels",
          digestOf(JSON.stringify([needed.text, fromSource, version, interpreter.path])),
        ),
      })
    : { lock: needed.text, paths: [] };
  const wheels = await wheelFiles(paths);
  const content = new Map([...sources.content, [LOCK_NAME, Buffer.from(lock)] as const]);
  const own = await indexFiles(content);
  const brought = await indexFiles(wheels);
  const open = ({ path }: IndexedFile) => openSource(wheels.get(path) ?? "");
  const environment = await environments.hold(
    {
      ...{ lock, python: version },
      ...(isVendored && { wheels: vendoredWheels({ files: brought }, open) }),
    },
    signal && { signal },
  );
  onStep?.("load");
  const manifest = await probe(service, { sources, content, own, environment, sandbox }, options);
  environment.release();
  await environments.sweep({ unusedForMs: UNUSED_ENVIRONMENT_TTL_MS });
  const isForOnePlatform = isVendored || own.some(({ path }) => isNative(path));
  const index = createIndex(manifest, [...own, ...brought], {
    entry,
    ...(isForOnePlatform && { platform: currentPlatform() }),
    python: {
      version,
      ...(!service.module.endsWith(".py") && { module: service.module }),
      ...(service.name !== undefined && { object: service.name }),
    },
  });
  return {
    index,
    digest: digestOf(writeIndex(index)),
    files: new Map([...content, ...wheels]),
    warnings: [],
  };
}

interface Probed {
  readonly sources: PythonSources;
  readonly content: ReadonlyMap<string, FileSource>;
  readonly own: readonly IndexedFile[];
  readonly environment: HeldEnvironment;
  readonly sandbox: Sandbox;
}

/** Imports the service as a node will, in the sandbox if this machine has one. */
async function probe(
  service: ServiceEntry,
  { sources, content, own, environment, sandbox }: Probed,
  { env = {}, readyTimeoutMs = PROBE_READY_TIMEOUT_MS, runsElsewhere, signal }: BuildOptions,
): Promise<ServiceManifest> {
  const temporary = await realpath(await mkdtemp(join(tmpdir(), "tessera-build-")));
  try {
    const folder = join(temporary, "artifact");
    await writeFiles(own, ({ path }) => openSource(content.get(path) ?? ""), folder);
    const scratchFolder = await mkdtemp(join(temporary, "scratch-"));
    const servicePath = join(folder, sources.entry);
    const isFile = service.module.endsWith(".py");
    const code = {
      ...(isFile ? { ...service, module: servicePath } : { ...service, folder }),
      interpreter: environment.python,
      env: {},
      files: [...environment.files, folder],
    };
    const launchOf = launchersFor(sandbox);
    return await probeService(
      {
        servicePath,
        code: {
          module: code.module,
          ...(code.name && { name: code.name }),
          ...(!isFile && { folder }),
        },
        folder,
        rights: { read: [], write: [scratchFolder], addons: true, threads: true, sqlite: true },
        launch: launchOf({ code }),
      },
      scratchFolder,
      {
        root: sources.root,
        source: join(sources.root, sources.entry),
        env,
        readyTimeoutMs,
        ...(runsElsewhere && { runsElsewhere }),
        ...(signal && { signal }),
      },
    );
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}
