/**
 * The build of a service in Python: its sources, the lock of its packages, and the manifest
 * that it gives when it is imported in an environment made of exactly these.
 *
 * Sources are the `.py` files in its folder and below; everything else is named by
 * `include`. Builds are reproducible as far as the lock is: it names the newest releases
 * that fit, unless a file beside the service pins them.
 */
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, realpath, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, sep } from "node:path";
import { launchersFor, programLauncher } from "../../pool/launchers.ts";
import { findSandbox, type Sandbox } from "../../pool/sandbox/sandbox.ts";
import type { ServiceManifest } from "../../protocol/manifest.ts";
import type { ServiceEntry } from "../../protocol/messages.ts";
import { ArtifactError } from "../artifact-error.ts";
import { bentoStore } from "../bento-models.ts";
import {
  type BuildOptions,
  type BuiltArtifact,
  PROBE_READY_TIMEOUT_MS,
  type PythonBuildOptions,
} from "../build-options.ts";
import { ServiceFileError } from "../bundle.ts";
import {
  type FileSource,
  indexFiles,
  inParts,
  isNative,
  openSource,
  writeContent,
} from "../content.ts";
import { systemNeeds } from "../environments/bentoml.ts";
import { collectWheels } from "../environments/collect.ts";
import type { HeldEnvironment } from "../environments/environment.ts";
import { openInterpreter, type PythonInterpreter } from "../environments/interpreters.ts";
import { lockPackages } from "../environments/lock.ts";
import { packageName } from "../environments/requirements.ts";
import type { UvRun } from "../environments/run-uv.ts";
import { EnvironmentStore } from "../environments/store.ts";
import { findUv } from "../environments/uv.ts";
import { lockedImage } from "../images/build.ts";
import { includedFiles } from "../include.ts";
import {
  createIndex,
  digestOf,
  IMAGE_LOCK_NAME,
  type IndexedFile,
  LOCK_NAME,
  MAX_ARTIFACT_FILES,
  SYSTEM_LOCK_NAME,
  WHEELS_FOLDER,
  writeIndex,
} from "../index-file.ts";
import { KnownDigests } from "../known-digests.ts";
import { lockedPackages } from "../layers/build.ts";
import { wholePath } from "../parts.ts";
import { currentPlatform } from "../platform.ts";
import { probeService, type SystemFiles } from "../probe.ts";
import { PROGRAM_MODULE, type ProgramService, pythonModule } from "../program.ts";
import { systemFor } from "../system.ts";
import { nearestInterpreter } from "./interpreter.ts";
import { findFile, sourcesIn } from "./service.ts";
import { vendoredWheels, wheelFiles } from "./wheels.ts";

/** Disk space of the environments of builds. */
const MAX_BUILD_ENVIRONMENTS_BYTES = 50 * 1024 ** 3;

/** Environments of builds that were not used for this long are removed. */
const UNUSED_ENVIRONMENT_TTL_MS = 7 * 24 * 60 * 60 * 1000;

/**
 * Builds the service. Rejects with a `ServiceFileError`, an `EnvironmentError`, or an
 * `ArtifactError` when it does not load.
 */
export async function buildPythonArtifact(
  target: ServiceEntry | ProgramService,
  python: PythonBuildOptions,
  options: BuildOptions,
): Promise<BuiltArtifact> {
  const { include = [], onStep, signal } = options;
  onStep?.("lock");
  const sources =
    "command" in target
      ? await programSources(target, include)
      : await pythonSources(target, include);
  const { service, root, entry } = sources;
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
  onStep?.("read");
  const wheels = await wheelFiles(paths);
  const content = new Map([...sources.content, [LOCK_NAME, Buffer.from(lock)] as const]);
  const own = await indexFiles(content, await KnownDigests.read(python.cacheFolder));
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
  const named = await systemNeeds(root, entry, interpreter);
  const modelStore = bentoStore(python.env);
  const probed = { sources, content, own, environment, sandbox, modelStore };
  const manifest = await probe(service, probed, options).catch(async (err: unknown) => {
    // Most services load without what they need of a system, which takes a while to be there.
    await using system = await systemFor(err, named, { sandbox, options: { ...options, python } });
    return await probe(service, { ...probed, system }, options);
  });
  const models = { ...named.models, ...manifest.models };
  const packages = await lockedPackages(manifest, {
    ...options,
    packages: [...(options.packages ?? []), ...named.packages],
  });
  const image = await lockedImage({ image: manifest.image ?? named.image }, options);
  environment.release();
  await environments.sweep({ unusedForMs: UNUSED_ENVIRONMENT_TTL_MS });
  const isForOnePlatform = isVendored || own.some(({ path }) => isNative(wholePath(path)));
  const described = Object.keys(models).length === 0 ? manifest : { ...manifest, models };
  const index = createIndex(described, [...own, ...brought, ...packages.files, ...image.files], {
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
    files: new Map([...content, ...wheels, ...packages.content, ...image.content]),
    warnings: [],
  };
}

interface Probed {
  readonly sources: PythonSources;
  readonly content: ReadonlyMap<string, FileSource>;
  readonly own: readonly IndexedFile[];
  readonly environment: HeldEnvironment;
  readonly sandbox: Sandbox;
  /** BentoML's on this machine. */
  readonly modelStore: string;
  /** Its system packages, or its image. Default: it has none while it is built. */
  readonly system?: SystemFiles;
}

/** Imports the service as a node will, in the sandbox if this machine has one. */
async function probe(
  service: ServiceEntry,
  { sources, content, own, environment, sandbox, modelStore, system }: Probed,
  { env = {}, readyTimeoutMs = PROBE_READY_TIMEOUT_MS, probe: how, signal }: BuildOptions,
): Promise<ServiceManifest> {
  const temporary = await realpath(await mkdtemp(join(tmpdir(), "tessera-build-")));
  try {
    const folder = join(temporary, "artifact");
    await writeContent(own, content, folder);
    const scratchFolder = await mkdtemp(join(temporary, "scratch-"));
    const models = await linkModels(modelStore, scratchFolder);
    const servicePath = join(folder, sources.entry);
    const isFile = service.module.endsWith(".py");
    const code = {
      ...(isFile ? { ...service, module: servicePath } : { ...service, folder }),
      interpreter: environment.python,
      env: {},
      files: [...environment.files, folder, ...models],
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
        rights: {
          read: [],
          write: [scratchFolder],
          addons: true,
          threads: true,
          processes: false,
          sqlite: true,
        },
        launch: launchOf({ code }),
        ...(system && { system }),
      },
      scratchFolder,
      {
        root: sources.root,
        source: join(sources.root, sources.entry),
        env,
        readyTimeoutMs,
        probe: how,
        ...(signal && { signal }),
      },
    );
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/**
 * Puts BentoML's store of models where a worker looks for it, because code may ask for some while it
 * is imported. Returns what the worker has to see for it.
 */
async function linkModels(store: string, scratchFolder: string): Promise<string[]> {
  if (!existsSync(store)) {
    return [];
  }
  const models = await realpath(store);
  await mkdir(join(scratchFolder, "bentoml"));
  await symlink(models, join(scratchFolder, "bentoml/models"));
  return [models];
}

/** The source files of a service in Python, and which of them it is imported from. */
interface PythonSources {
  readonly service: ServiceEntry;
  /** The folder that becomes the artifact's root. */
  readonly root: string;
  /** The path of the service's file, from the root. */
  readonly entry: string;
  /** By path in the artifact. */
  readonly content: ReadonlyMap<string, FileSource>;
}

/** Rejects with a `ServiceFileError` or an `ArtifactError` that names what is wrong. */
async function pythonSources(
  service: ServiceEntry,
  include: readonly string[],
): Promise<PythonSources> {
  const { module } = service;
  const isFile = module.endsWith(".py");
  const file = isFile ? await findFile(module) : undefined;
  const root = file === undefined ? await realpath(process.cwd()) : dirname(file);
  const entry = file === undefined ? fileOfModule(module, root) : basename(file);
  const content = await contentOf(root, { [entry]: join(root, entry) }, include);
  return { service, root, entry, content };
}

/** The same for a program, whose service is written here. */
async function programSources(
  program: ProgramService,
  include: readonly string[],
): Promise<PythonSources> {
  const [root, entry] = [await realpath(program.folder), PROGRAM_MODULE];
  const content = await contentOf(root, { [entry]: Buffer.from(pythonModule(program)) }, include);
  return { service: { module: join(root, entry) }, root, entry, content };
}

async function contentOf(
  root: string,
  own: Readonly<Record<string, FileSource>>,
  include: readonly string[],
): Promise<ReadonlyMap<string, FileSource>> {
  const found = await sourcesIn(root, MAX_ARTIFACT_FILES + 1);
  const content = new Map<string, FileSource>(Object.entries(own));
  for (const path of [...found, ...(await includedFiles(include, root))]) {
    const place = relative(root, path).split(sep).join("/");
    if (
      [LOCK_NAME, SYSTEM_LOCK_NAME, IMAGE_LOCK_NAME, PROGRAM_MODULE].includes(place) ||
      place.startsWith(WHEELS_FOLDER)
    ) {
      throw new ArtifactError(
        `${path} has the name of a file of the artifact's own; give it another name`,
      );
    }
    content.set(place, path);
  }
  return await inParts(content);
}

function fileOfModule(module: string, root: string): string {
  const path = module.replaceAll(".", "/");
  const found = [`${path}.py`, `${path}/__init__.py`].find((each) => existsSync(join(root, each)));
  if (found === undefined) {
    throw new ServiceFileError(`there is no module ${module} in ${root}`);
  }
  return found;
}

/** What a build in Python is made with: an interpreter, uv, and the environments of builds. */
interface Toolchain {
  readonly interpreter: PythonInterpreter;
  readonly run: Omit<UvRun, "args" | "cwd">;
  readonly environments: EnvironmentStore;
  /** The real path of the cache. */
  readonly folder: string;
}

/** Rejects with a `ServiceFileError` or an `EnvironmentError`. */
async function openToolchain(
  root: string,
  options: PythonBuildOptions & { readonly sandbox: Sandbox },
  signal: AbortSignal | undefined,
): Promise<Toolchain> {
  const { searchPath, env, uv: named, sandbox } = options;
  const program = options.named ?? nearestInterpreter(root, options);
  const interpreter = await openInterpreter(program, searchPath);
  if (interpreter === undefined) {
    throw new ServiceFileError(
      `${program} is not there, or does not run as Python: install Python 3.10 or newer, or name an interpreter by --python PATH`,
    );
  }
  const cache = join(options.cacheFolder, "python");
  await mkdir(cache, { recursive: true });
  const folder = await realpath(cache);
  const uv = await findUv({ named, folder, platform: currentPlatform(), interpreter, env, signal });
  const environments = new EnvironmentStore({
    folder,
    interpreters: async () => [interpreter],
    uv: async () => uv,
    env,
    launch: programLauncher(sandbox),
    maxBytesPerOrganization: MAX_BUILD_ENVIRONMENTS_BYTES,
    log: { info() {}, warn() {} },
    now: Date.now,
  });
  const run = { uv, cacheFolder: join(folder, "cache"), env, signal };
  return { interpreter, run, environments, folder };
}
