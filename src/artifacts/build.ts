/**
 * The build of an artifact: compiles a service, traces the files that it needs,
 * gives them their paths, and loads the result in a worker as a test.
 *
 * The packages that stay files are found iteratively: first those whose code asks
 * for its own path, then the packages that these load, which must not exist twice,
 * as files and in the bundle. Each iteration compiles again; nearly always one or
 * two are enough.
 *
 * Builds are reproducible: nothing in the artifact depends on the service's path on
 * this machine, on the time of the build or on the user.
 */
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { launchersFor } from "../pool/launchers.ts";
import { findSandbox } from "../pool/sandbox/sandbox.ts";
import {
  type BuildOptions,
  type BuildStep,
  type BuiltArtifact,
  PROBE_READY_TIMEOUT_MS,
} from "./build-options.ts";
import { findService, ServiceFileError } from "./bundle.ts";
import { type CompiledCode, commonFolder, compileService, MAP_NAME } from "./compile.ts";
import {
  type FileSource,
  indexFiles,
  inParts,
  isNative,
  type Layout,
  layOut,
  packagesOf,
  placesOf,
  withDescriptions,
  writeContent,
} from "./content.ts";
import { lockedImage } from "./images/build.ts";
import { includedFiles } from "./include.ts";
import { type ArtifactIndex, createIndex, digestOf, ENTRY_NAME, writeIndex } from "./index-file.ts";
import { KnownDigests } from "./known-digests.ts";
import { lockedPackages } from "./layers/build.ts";
import { type FindPackage, packageFinder } from "./packages.ts";
import { wholePath } from "./parts.ts";
import { placePackages } from "./placement.ts";
import { currentPlatform, platformParts } from "./platform.ts";
import { nodeService, type ProbeOptions, probeService } from "./probe.ts";
import { isInPython, type ProgramService, programContent } from "./program.ts";
import { buildPythonArtifact } from "./python/build.ts";
import { pythonTarget } from "./python/target.ts";
import { systemFor } from "./system.ts";
import { type Dependency, traceFiles } from "./trace.ts";

/** Warnings that a build shows; it counts the rest. */
const MAX_SHOWN_WARNINGS = 5;

/**
 * Builds the service in a file, or one that is a program. Throws a `ServiceFileError` when it does not
 * compile, and an `ArtifactError` when it does not load or is too large.
 */
export async function buildArtifact(
  target: string | ProgramService,
  options: BuildOptions = {},
): Promise<BuiltArtifact> {
  const { include = [], signal } = options;
  const entry =
    typeof target === "string"
      ? pythonTarget(target)
      : (await isInPython(target, options.image))
        ? target
        : undefined;
  if (entry !== undefined) {
    if (options.python === undefined) {
      throw new ServiceFileError("it is in Python, which is not built here");
    }
    return buildPythonArtifact(entry, options.python, options);
  }
  if (typeof target !== "string") {
    return buildProgram(target, options);
  }
  const onStep = (step: BuildStep): void => {
    signal?.throwIfAborted();
    options.onStep?.(step);
  };
  const servicePath = await findService(target);
  const findPackage = packageFinder(servicePath);
  const included = await includedFiles(include, dirname(servicePath), { around: true });
  const gathered = await gather(servicePath, { findPackage, included, onStep });
  const { files, dependencies, external } = gathered;
  const own = [...gathered.modules, ...files].filter((file) => findPackage(file) === undefined);
  const root = commonFolder(own);
  const places = placePackages(packagesOf(files, findPackage), dependencies);
  const layout: Layout = { root, findPackage, places };
  // Where nothing stays outside, and the root is the service's folder, it would be the same again.
  const { code, sourceMap, warnings } =
    external.size === 0 && root === dirname(servicePath)
      ? gathered.compiled
      : await compileService({
          servicePath,
          root,
          findPackage,
          external,
          placeOf: (file) => placesOf(file, layout)[0] ?? "",
        });
  const compiled = new Map([
    [ENTRY_NAME, Buffer.from(code)],
    [MAP_NAME, Buffer.from(sourceMap)],
  ]);
  const content = await inParts(layOut(files, compiled, layout));
  onStep("load");
  const { index, locked } = await describeArtifact(content, {
    ...{ root, source: servicePath },
    ...options,
  });
  return {
    index,
    digest: digestOf(writeIndex(index)),
    files: new Map([...content, ...locked]),
    warnings: [...warnings, ...gathered.warnings],
  };
}

/** Builds a service that is a program, in Node. */
async function buildProgram(
  service: ProgramService,
  options: BuildOptions,
): Promise<BuiltArtifact> {
  options.onStep?.("load");
  const { folder: root, source } = service;
  const content = await programContent(service, options.include ?? []);
  const { index, locked } = await describeArtifact(content, { root, source, ...options });
  const files = new Map([...content, ...locked]);
  return { index, digest: digestOf(writeIndex(index)), files, warnings: [] };
}

interface Gathered {
  /** The service, compiled in its folder. */
  readonly compiled: CompiledCode;
  /** The service's own modules, which are in the bundle. */
  readonly modules: readonly string[];
  /** All files that the artifact needs in addition to the bundle. */
  readonly files: readonly string[];
  readonly dependencies: readonly Dependency[];
  /** Folders of the packages that stay files. */
  readonly external: ReadonlySet<string>;
  readonly warnings: readonly string[];
}

interface GatherOptions {
  readonly findPackage: FindPackage;
  readonly included: readonly string[];
  readonly onStep: (step: BuildStep) => void;
}

async function gather(
  servicePath: string,
  { findPackage, included, onStep }: GatherOptions,
): Promise<Gathered> {
  const external = new Set(packagesOf(included, findPackage).map(({ root }) => root));
  const root = dirname(servicePath);
  for (;;) {
    onStep("compile");
    const placeOf = (file: string): string => file;
    const compiled = await compileService({ servicePath, root, findPackage, external, placeOf });
    if (compiled.unfit.size > 0) {
      addAll(external, compiled.unfit);
      continue;
    }
    onStep("trace");
    const modules = compiled.inputs.filter((file) => findPackage(file) === undefined);
    const traced = await traceFiles({ ...compiled, modules, findPackage });
    const parts = await platformParts(packagesOf(traced.files, findPackage), findPackage);
    const found = [...traced.files, ...parts.files, ...included];
    const files = await withDescriptions(found, findPackage);
    const twice = bundledToo(compiled, files, findPackage);
    if (twice.length === 0) {
      const imported = compiled.entries.flatMap((file) => findPackage(file) ?? []);
      const direct = imported.map((to) => ({ from: undefined, name: to.name, to }));
      const dependencies = [...direct, ...traced.dependencies, ...parts.dependencies];
      const warnings = leftBehind(traced.leftOut, { root, included });
      return { compiled, modules, files, dependencies, external, warnings };
    }
    addAll(external, twice);
  }
}

/** Warnings about files that the service's own code reads but that are not in the artifact. */
function leftBehind(
  files: readonly string[],
  { root, included }: { readonly root: string; readonly included: readonly string[] },
): string[] {
  const missed = files.filter((file) => !included.includes(file)).toSorted();
  const lines = missed.slice(0, MAX_SHOWN_WARNINGS).map((file) => {
    const path = relative(root, file);
    return `the service reads ${path}, which is hidden or outside its project and is left out; --include ${path} puts it in`;
  });
  return missed.length > MAX_SHOWN_WARNINGS
    ? [...lines, `and ${missed.length - MAX_SHOWN_WARNINGS} more`]
    : lines;
}

/** Folders of packages that have files both in the bundle and beside it. */
function bundledToo(
  { inputs }: CompiledCode,
  files: readonly string[],
  findPackage: FindPackage,
): string[] {
  const bundled = new Set(packagesOf(inputs, findPackage).map(({ root }) => root));
  return packagesOf(files, findPackage)
    .map(({ root }) => root)
    .filter((root) => bundled.has(root));
}

function addAll(set: Set<string>, values: Iterable<string>): void {
  for (const value of values) {
    set.add(value);
  }
}

interface Described {
  readonly index: ArtifactIndex;
  /** The lock of its system packages, or of its image, where it names any. */
  readonly locked: ReadonlyMap<string, FileSource>;
}

/** A module in TypeScript is not read without running it: what it needs to load, the build names. */
const NOTHING_READ = { packages: [], declared: { packages: [] } };

/** The index, with the manifest that the service gives when loaded from exactly these files. */
async function describeArtifact(
  content: ReadonlyMap<string, FileSource>,
  options: BuildOptions & Pick<ProbeOptions, "root" | "source">,
): Promise<Described> {
  const { root, source, env = {}, python, signal } = options;
  const { readyTimeoutMs = PROBE_READY_TIMEOUT_MS } = options;
  const known = python && (await KnownDigests.read(python.cacheFolder));
  const files = await indexFiles(content, known);
  const native = files.some(({ path }) => isNative(wholePath(path)));
  const temporary = await mkdtemp(join(tmpdir(), "tessera-build-"));
  try {
    const folder = join(temporary, "artifact");
    await writeContent(files, content, folder);
    const scratchFolder = await realpath(await mkdtemp(join(temporary, "scratch-")));
    const probe = { root, source, env, readyTimeoutMs, ...(signal && { signal }) };
    const probed = await nodeService(folder, { native, scratchFolder });
    const service = await probeService(probed, scratchFolder, probe).catch(async (err: unknown) => {
      // Most services load without what they need of a system, which takes a while to be there.
      const sandbox = await findSandbox("auto", python?.searchPath ?? "");
      await using system = await systemFor(err, NOTHING_READ, { sandbox, options });
      const launch = launchersFor(sandbox)(probed);
      return await probeService({ ...probed, launch, system }, scratchFolder, probe);
    });
    const packages = await lockedPackages(service, options);
    const image = await lockedImage(service, options);
    const kind = native ? { platform: currentPlatform() } : {};
    return {
      index: createIndex(service, [...files, ...packages.files, ...image.files], kind),
      locked: new Map([...packages.content, ...image.content]),
    };
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}
