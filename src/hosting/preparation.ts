/**
 * Preparation of a revision before workers start: its artifact on disk, its variables, and for
 * Python the environment with its packages.
 */

import { text } from "node:stream/consumers";
import {
  EnvironmentError,
  type EnvironmentProgress,
  type Environments,
  type HeldEnvironment,
  PYTHON_UNAVAILABLE,
} from "../artifacts/environments/environment.ts";
import type { HeldFolder } from "../artifacts/environments/folder-store.ts";
import { type HeldImage, IMAGES_UNAVAILABLE, type Images } from "../artifacts/images/images.ts";
import { MAX_IMAGE_LOCK_BYTES } from "../artifacts/images/lock.ts";
import {
  type ArtifactIndex,
  IMAGE_LOCK_NAME,
  type IndexedFile,
  LOCK_NAME,
  type PinnedModel,
  type PythonFacts,
  SYSTEM_LOCK_NAME,
} from "../artifacts/index-file.ts";
import { LAYERS_UNAVAILABLE, type Layers } from "../artifacts/layers/layers.ts";
import { MAX_SYSTEM_LOCK_BYTES } from "../artifacts/layers/lock.ts";
import { vendoredWheels } from "../artifacts/python/wheels.ts";
import type { CacheFolders } from "../deployments/cache-folders.ts";
import { awaitedWorkers, gpuNeedOn } from "../deployments/placement.ts";
import { MAX_LAST_ANSWER_MS } from "../pool/calls/mount-agents.ts";
import type { Gpus } from "../pool/gpus/gpus.ts";
import type { WorkerModel } from "../pool/launch/models.ts";
import { DEFAULT_LIMITS } from "../pool/limits.ts";
import type { WorkerImage } from "../pool/sandbox/image.ts";
import type { PythonCode, ServiceCode } from "../pool/worker-options.ts";
import type { ServiceManifest } from "../protocol/manifest.ts";
import type { DeploymentSettings, MachineLabels } from "../storage/deployment-settings.ts";
import type { DesiredDeployment } from "../storage/hosting/revisions.ts";
import { MAX_TIMER_MS } from "../time/alarm.ts";
import { raceAbort } from "../time/race.ts";
import type { HeldArtifact } from "./artifact-cache.ts";
import type { ServedRevision } from "./last-served.ts";
import type { ModelProgress, ModelStore } from "./models/store.ts";

const MEBIBYTE = 1024 ** 2;
const GIBIBYTE = 1024 ** 3;

/**
 * How long the files of a replaced revision stay beyond its longest timeout: more than a call
 * gets to clean up after its time.
 */
const RETIREMENT_MARGIN_MS = 60_000;

export interface PreparationOptions {
  readonly models: Pick<ModelStore, "hold">;
  readonly hold: (organizationId: string, digest: string) => Promise<HeldArtifact>;
  /** The environment variables of the revision's workers, with the secrets that it may have. */
  readonly variables: (record: DesiredDeployment, revision: number) => Promise<Variables>;
  /** Undefined where services in Python do not run. */
  readonly environments: Environments | undefined;
  /** Undefined where there are no system packages. */
  readonly layers: Pick<Layers, "hold"> | undefined;
  /** Undefined where there are no container images. */
  readonly images: Pick<Images, "hold"> | undefined;
  /** The labels of this node. */
  readonly labels: MachineLabels;
  /** Its GPUs. */
  readonly gpus: Gpus;
  readonly caches: Pick<CacheFolders, "of">;
  /** Whether it may start no workers, because its machine is drained. Default: it may. */
  readonly isDrained?: () => boolean;
  /** Called with what takes a while, one line each time. */
  readonly onProgress: (text: string, revision: number) => void;
  /** Called with what the preparation does now, again and again while it lasts. */
  readonly onStep?: (text: string) => void;
}

export interface Variables {
  readonly env: { readonly [name: string]: string };
  /** The names of the secrets among them. */
  readonly secrets: readonly string[];
}

interface Prepared {
  readonly artifact: HeldArtifact;
  readonly service: ServiceCode;
}

/** Holds the artifact and builds the service to start. If that fails, holds nothing. */
export async function prepare(
  record: DesiredDeployment,
  { revision, digest }: ServedRevision,
  options: PreparationOptions & { readonly signal: AbortSignal },
): Promise<Prepared> {
  const { hold, variables, onProgress, signal } = options;
  const held = await hold(record.organizationId, digest);
  // With its packages, once these are there.
  let whole = held;
  try {
    const { env, secrets } = await variables(record, revision);
    const { labels } = options;
    const gpus = options.gpus.list;
    const { memoryMib, cpu, network } = record.settings;
    const { service: manifest, kind } = held.index;
    const limits = {
      ...DEFAULT_LIMITS,
      memoryBytes: memoryMib * MEBIBYTE,
      cpus: cpu,
      processes: record.settings.processes || (manifest.processes ?? 0),
    };
    const awaits = awaitedWorkers(record, manifest, {
      ...{ labels, gpus, hasCode: kind !== "remote" },
      isDrained: options.isDrained?.() ?? false,
    });
    // Last, because it holds more. What this node does not start needs no packages here.
    const { artifact, code, layer, image } =
      awaits?.isWhole !== true
        ? await withCode(held, {
            ...options,
            ...{ organizationId: record.organizationId, memoryBytes: limits.memoryBytes },
            progress: {
              signal,
              onProgress: (text) => {
                onProgress(text, revision);
                options.onStep?.(text);
              },
            },
          })
        : { artifact: held, code: held.readCode };
    whole = artifact;
    const { index, servicePath } = artifact;
    signal.throwIfAborted();
    const models = awaits?.isWhole === true ? [] : await holdModels(record, index.models, options);
    const cache = options.caches.of(record.deploymentId);
    const need = gpuNeedOn(
      record.settings,
      manifest,
      (endpoint) => awaits?.endpoints.has(endpoint) !== true,
    );
    const service: ServiceCode = {
      servicePath,
      code,
      selfContained: true,
      revision: {
        number: revision,
        ...{ env, secrets },
        limits,
        network,
        ...(cache !== undefined && { cache }),
        ...(layer !== undefined && { layer }),
        ...(image !== undefined && { image }),
        ...(models.length > 0 && { models: models.map(({ model }) => model) }),
        ...readyTimeoutOf(record.settings, manifest),
        ...(awaits !== undefined && { awaits }),
        ...(need !== undefined && { gpus: need }),
        // Code in Python is held by the sandbox alone, whatever it is made of.
        ...(index.platform !== undefined &&
          index.python === undefined && { platform: index.platform }),
      },
    };
    const release = (): void => {
      artifact.release();
      for (const each of models) {
        each.release();
      }
    };
    return { artifact: { ...artifact, release }, service };
  } catch (err) {
    whole.release();
    throw err;
  }
}

/** Brings the models of a revision to this machine. If one cannot be, holds none. */
export async function holdModels(
  { organizationId }: Pick<DesiredDeployment, "organizationId">,
  pinned: readonly PinnedModel[] = [],
  {
    models,
    signal,
    onStep,
  }: Pick<PreparationOptions, "models" | "onStep"> & {
    readonly signal: AbortSignal;
  },
): Promise<readonly { readonly model: WorkerModel; release(): void }[]> {
  const outcomes = await Promise.allSettled(
    pinned.map(async ({ name, digest, repository, commit, tag, revision }) => {
      const { path, release } = await models
        .hold(
          { organizationId, digest },
          { signal, onProgress: (progress) => onStep?.(waitsFor(name, progress)) },
        )
        .catch((err: unknown) => {
          const { message } = err as Error;
          throw err instanceof Error && !signal.aborted
            ? new Error(`its model ${name} cannot be brought here: ${message}`, { cause: err })
            : err;
        });
      const model = {
        ...{ name, path },
        ...(repository && commit && { repository, commit }),
        ...(tag && { tag }),
        ...(revision && { revision }),
      };
      return { model, release };
    }),
  );
  const held = outcomes.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const failed = outcomes.find((each) => each.status === "rejected");
  if (failed !== undefined) {
    for (const { release } of held) {
      release();
    }
    throw failed.reason;
  }
  return held;
}

/** Such as `waits for model qwen: 41 % of 15.2 GiB, 2 min left`. */
function waitsFor(name: string, { bytes, totalBytes, bytesPerSecond }: ModelProgress): string {
  const share = Math.floor((bytes / Math.max(1, totalBytes)) * 100);
  const size =
    totalBytes < GIBIBYTE
      ? `${Math.ceil(totalBytes / MEBIBYTE)} MiB`
      : `${(totalBytes / GIBIBYTE).toFixed(1)} GiB`;
  const leftS = bytesPerSecond === undefined ? undefined : (totalBytes - bytes) / bytesPerSecond;
  const left =
    leftS === undefined
      ? ""
      : leftS < 90
        ? `, ${Math.ceil(leftS)} s left`
        : `, ${Math.round(leftS / 60)} min left`;
  return `waits for model ${name}: ${share} % of ${size}${left}`;
}

/** How long workers may take to load: the deployment's setting goes before the code. */
function readyTimeoutOf(
  { readyTimeoutMs: chosen }: Pick<DeploymentSettings, "readyTimeoutMs">,
  { readyTimeoutMs: declared }: ServiceManifest,
): Pick<NonNullable<ServiceCode["revision"]>, "readyTimeoutMs"> {
  const readyTimeoutMs = chosen === 0 ? declared : chosen;
  return readyTimeoutMs === undefined ? {} : { readyTimeoutMs };
}

interface HeldCode {
  /** It holds all that the code needs. */
  readonly artifact: HeldArtifact;
  readonly code: ServiceCode["code"];
  /** The folder with its system packages; undefined without any. */
  readonly layer?: string;
  /** The image that it runs in; undefined without any. */
  readonly image?: WorkerImage;
}

/**
 * The code that workers load; the artifact holds its environment, and its system packages or its
 * image, too.
 */
export async function withCode(artifact: HeldArtifact, options: CodeOptions): Promise<HeldCode> {
  // An artifact has one of the two.
  const layer = await holdLayer(artifact, options);
  const image = await holdImage(artifact, options);
  const files = layer ?? image;
  try {
    const held = await withEnvironment(artifact, options);
    if (files === undefined) {
      return held;
    }
    return {
      ...withFiles(held, files),
      ...(layer !== undefined && { layer: layer.folder }),
      ...(image !== undefined && { image: image.image }),
    };
  } catch (err) {
    files?.release();
    throw err;
  }
}

/** Holds the system packages of an artifact. Rejects with an `EnvironmentError`. */
async function holdLayer(
  { index, openFile }: Pick<HeldArtifact, "index" | "openFile">,
  { layers, organizationId, progress }: CodeOptions,
): Promise<HeldFolder | undefined> {
  const file = index.files.find(({ path }) => path === SYSTEM_LOCK_NAME);
  if (file === undefined) {
    return undefined;
  }
  if (layers === undefined) {
    throw new EnvironmentError("SANDBOX_UNAVAILABLE", LAYERS_UNAVAILABLE);
  }
  const lock = await readLock(file, { openFile, maxBytes: MAX_SYSTEM_LOCK_BYTES });
  return await layers.hold({ lock, organizationId }, progress);
}

/** Holds the image of an artifact. Rejects with an `EnvironmentError`. */
async function holdImage(
  { index, openFile }: Pick<HeldArtifact, "index" | "openFile">,
  { images, organizationId, progress }: CodeOptions,
): Promise<HeldImage | undefined> {
  const file = index.files.find(({ path }) => path === IMAGE_LOCK_NAME);
  if (file === undefined) {
    return undefined;
  }
  if (images === undefined) {
    throw new EnvironmentError("SANDBOX_UNAVAILABLE", IMAGES_UNAVAILABLE);
  }
  const lock = await readLock(file, { openFile, maxBytes: MAX_IMAGE_LOCK_BYTES });
  return await images.hold({ lock, organizationId }, progress);
}

async function readLock(
  file: IndexedFile,
  { openFile, maxBytes }: Pick<HeldArtifact, "openFile"> & { readonly maxBytes: number },
): Promise<string> {
  if (file.size > maxBytes) {
    throw new EnvironmentError(
      "LOCK_INVALID",
      `its ${file.path} has ${file.size} bytes; at most ${maxBytes} may be`,
      { isFinal: true },
    );
  }
  return await text(openFile(file));
}

/** The code, which is not loaded before its system packages, or its image, are verified. */
function withFiles({ artifact, code }: HeldCode, files: HeldFolder): HeldCode {
  const release = (): void => {
    artifact.release();
    files.release();
  };
  return {
    artifact: { ...artifact, release },
    code:
      typeof code === "object"
        ? {
            ...code,
            verify: async () => {
              await files.verify();
              await code.verify?.();
            },
          }
        : async () => {
            await files.verify();
            return typeof code === "string" ? code : await code();
          },
  };
}

async function withEnvironment(
  artifact: HeldArtifact,
  { environments, layers: _, images: __, ...holding }: CodeOptions,
): Promise<HeldCode> {
  const { python } = artifact.index;
  if (python === undefined) {
    return { artifact, code: artifact.readCode };
  }
  if (environments === undefined) {
    throw new EnvironmentError("SANDBOX_UNAVAILABLE", PYTHON_UNAVAILABLE);
  }
  const environment = await holdEnvironment(artifact, python, { environments, ...holding });
  const release = (): void => {
    artifact.release();
    environment.release();
  };
  return {
    artifact: { ...artifact, release },
    code: pythonCode(artifact, python, environment),
  };
}

type CodeOptions = Pick<PreparationOptions, "environments" | "layers" | "images"> &
  Omit<HoldingOptions, "environments">;

/** Rejects when the signal aborts, and releases what is prepared after that. */
export async function untilAborted(
  preparing: Promise<Prepared>,
  signal: AbortSignal,
): Promise<Prepared> {
  try {
    return await raceAbort(preparing, signal);
  } catch (err) {
    preparing.then(
      ({ artifact }) => artifact.release(),
      () => {}, // Nothing to release.
    );
    throw err;
  }
}

/** Releases an artifact after the longest time that its old workers may take to finish. */
export function releaseLater({ index, release }: HeldArtifact): void {
  const { endpoints, mounts = [] } = index.service;
  const longestMs = Math.max(
    ...endpoints.map(({ timeoutMs }) => timeoutMs),
    // What a server answers may go on until then, or behind its last request as a task.
    ...mounts.map(({ queue }) => MAX_LAST_ANSWER_MS + (queue?.timeoutMs ?? 0)),
  );
  setTimeout(release, Math.min(longestMs + RETIREMENT_MARGIN_MS, MAX_TIMER_MS)).unref();
}

/** Identifies how a deployment runs: records with equal keys need no roll-out between them. */
export function keyOf(record: DesiredDeployment): string {
  const { targetRevision, digest, settings, secretsConfirmed } = record;
  const { secretsSince, secretsVersion } = record;
  const { memoryMib, cpu, env, network, requires, place, readyTimeoutMs, processes } = settings;
  const { gpus, gpuMemoryMib } = settings;
  return JSON.stringify([
    [targetRevision, digest, memoryMib, cpu, Object.entries(env).toSorted(), network],
    [Object.entries(requires).toSorted(), place, readyTimeoutMs, processes, gpus, gpuMemoryMib],
    [secretsSince, secretsVersion, secretsConfirmed],
  ]);
}

/** Marks a revision that serves while the target revision is not ready here. */
export function standIn(service: ServiceCode): ServiceCode {
  const { revision } = service;
  return { ...service, ...(revision && { revision: { ...revision, standsIn: true } }) };
}

/** The code of a service in Python: its sources, and the environment with its packages. */
interface HoldingOptions {
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
async function holdEnvironment(
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
function pythonCode(
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
