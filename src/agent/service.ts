/**
 * The service of a session: its artifact and its environment made ready on this machine, and one
 * process that runs it and is started again when it ends. Without it, the worker stays
 * joined and has no slots.
 */
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { RegisterResponse } from "../../gen/tessera/v1/worker_pb.js";
import { EnvironmentError, type Environments } from "../artifacts/environments/environment.ts";
import type { Images } from "../artifacts/images/images.ts";
import type { ArtifactIndex } from "../artifacts/index-file.ts";
import type { Layers } from "../artifacts/layers/layers.ts";
import { currentPlatform } from "../artifacts/platform.ts";
import type { CacheFolders } from "../deployments/cache-folders.ts";
import { DeploymentCounts } from "../deployments/counts.ts";
import { gpuNeedOf } from "../deployments/placement.ts";
import type { ScratchFolders } from "../deployments/scratch.ts";
import { Workers } from "../deployments/workers.ts";
import type { HeldArtifact } from "../hosting/artifact-cache.ts";
import { holdModels, withCode } from "../hosting/preparation.ts";
import type { Log } from "../log/log.ts";
import type { WorkerGpu } from "../pool/gpus/gpus.ts";
import type { GpuGrant, GpuLedger } from "../pool/gpus/ledger.ts";
import type { WorkerModel } from "../pool/launch/models.ts";
import type { LaunchOf } from "../pool/launchers.ts";
import type { WorkerCache, WorkerLimits } from "../pool/limits.ts";
import { RestartBackoff } from "../pool/restart-backoff.ts";
import type { WorkerImage } from "../pool/sandbox/image.ts";
import type { Worker } from "../pool/worker.ts";
import type { ServiceCode } from "../pool/worker-options.ts";
import type { ServiceManifest } from "../protocol/manifest.ts";
import type { NetworkSettings } from "../storage/deployment-settings.ts";
import type { AgentArtifacts } from "./artifacts.ts";
import type { BlobSource, RemoteFiles } from "./files.ts";
import type { AgentModels } from "./models.ts";
import type { ReportStream } from "./reports.ts";

const MEBIBYTE = 1024 ** 2;
/** How often the log says how far a model is on its way. */
const STEP_INTERVAL_MS = 10_000;
/** A deployment's id, as the platform makes it: it is the name of a folder here. */
const DEPLOYMENT_ID = /^[\w-]{1,64}$/;
/** Characters of why a service cannot be started. */
const MAX_FAULT_CHARACTERS = 4_000;

/** What the workers of an agent share. */
export interface AgentMachine {
  readonly artifacts: AgentArtifacts;
  readonly models: AgentModels;
  /** Undefined where services in Python do not run: `pythonUnavailable` says why. */
  readonly environments: Environments | undefined;
  readonly pythonUnavailable: string;
  /** Undefined where there are no system packages. */
  readonly layers: Pick<Layers, "hold"> | undefined;
  /** Undefined where there are no container images. */
  readonly images: Pick<Images, "hold"> | undefined;
  readonly scratch: ScratchFolders;
  readonly launchOf: LaunchOf;
  /** Its GPUs, and which worker has which. */
  readonly gpus: GpuLedger;
  /** What workers keep between them and beyond their ends. */
  readonly caches: Pick<CacheFolders, "of">;
  /** Host rules; undefined: services have the network of the machine. */
  readonly allowedEgress: readonly string[] | undefined;
  readonly log: Log;
}

interface JoinedServiceOptions {
  readonly machine: AgentMachine;
  readonly registered: RegisterResponse;
  readonly source: BlobSource;
  readonly files: RemoteFiles;
  readonly reports: ReportStream;
  /** A process is ready, or has ended. */
  onChange(): void;
}

export class JoinedService {
  readonly #options: JoinedServiceOptions;
  readonly #workers: Workers;
  readonly #counts = new DeploymentCounts();
  readonly #backoff = new RestartBackoff(() => void this.start());
  #service: ServiceCode | undefined;
  #release: (() => void) | undefined;
  #worker: Worker | undefined;
  #manifest: ServiceManifest | undefined;
  #fault: string | undefined;
  #isEnding = false;
  #starts = 0;

  constructor(options: JoinedServiceOptions) {
    this.#options = options;
    const { machine, files, reports } = options;
    this.#workers = new Workers(
      {
        ...limitsOf(options.registered),
        log: machine.log,
        files: files.keepers,
        launchOf: machine.launchOf,
        allowedEgress: machine.allowedEgress,
        onOutput: (message, { stream }) => reports.line({ message, stream }),
      },
      machine.scratch,
    );
  }

  /** The process, when its service is loaded. */
  get worker(): Worker | undefined {
    return this.#manifest && this.#worker?.loaded ? this.#worker : undefined;
  }

  /** The process, as soon as it is started. */
  get process(): Worker | undefined {
    return this.#worker;
  }

  /** Why the service cannot be started here yet; undefined: it was, or nothing is wrong so far. */
  get fault(): string | undefined {
    return this.#fault;
  }

  /** Whether its process holds GPUs. */
  get hasGpus(): boolean {
    return this.#service?.revision?.gpus !== undefined;
  }

  get manifest(): ServiceManifest | undefined {
    return this.#manifest;
  }

  /** Starts a process, and again after a pause when that fails. Never rejects. */
  async start(): Promise<void> {
    const { machine, reports, onChange } = this.#options;
    const beganMs = performance.now();
    try {
      this.#service ??= await this.#prepare();
      if (this.#isEnding) {
        this.#letGo();
        return;
      }
      await this.#load(this.#service, beganMs);
    } catch (err) {
      const reason = faultText(err);
      if (!this.#isEnding) {
        machine.log.error({ reason }, "the service cannot be started here yet");
        reports.line({ message: `the service cannot be started: ${reason}`, stream: "node" });
        // What is at fault by itself waits for another revision, with which its worker joins anew.
        if (!(err instanceof EnvironmentError && err.isFinal)) {
          this.#backoff.failed(reason);
        }
        this.#fault = reason.slice(0, MAX_FAULT_CHARACTERS);
        onChange();
      }
    }
  }

  /** Lets the process end by itself, within the grace period. */
  async stop(): Promise<void> {
    this.#end();
    await this.#worker?.stop(limitsOf(this.#options.registered).graceMs);
    this.#letGo();
  }

  /** Kills the process. Resolves when it has ended. */
  async kill(reason: string): Promise<void> {
    this.#end();
    this.#worker?.kill(reason);
    await this.#worker?.exited;
    this.#letGo();
  }

  #end(): void {
    this.#isEnding = true;
    this.#backoff.cancel();
  }

  #letGo(): void {
    this.#release?.();
    this.#release = undefined;
  }

  async #prepare(): Promise<ServiceCode> {
    const { machine, registered, source } = this.#options;
    const text = Buffer.from(registered.artifactIndex).toString();
    const held = await machine.artifacts.hold(text, source);
    // With its packages, once these are there.
    let whole: Pick<HeldArtifact, "release"> = held;
    try {
      const { platform, python } = held.index;
      if (python === undefined && platform !== undefined && platform !== currentPlatform()) {
        throw new Error(
          `the code of the deployment is for ${platform}, and this machine is ${currentPlatform()}: build it on such a machine, or start the worker on another one`,
        );
      }
      if (python !== undefined && machine.environments === undefined) {
        throw new EnvironmentError("SANDBOX_UNAVAILABLE", machine.pythonUnavailable);
      }
      const { artifact, code, layer, image } = await withCode(held, {
        environments: machine.environments,
        layers: machine.layers,
        images: machine.images,
        organizationId: "",
        memoryBytes: workerLimitsOf(registered).memoryBytes,
        progress: { signal: source.signal, onProgress: (text) => this.#say(text) },
      });
      whole = artifact;
      const models = await this.#holdModels(held.index.models);
      this.#release = () => {
        artifact.release();
        for (const { release } of models) {
          release();
        }
      };
      const { servicePath } = held;
      const native = python === undefined && platform !== undefined && { platform };
      const { caches } = machine;
      const { deploymentId } = registered;
      // A platform that does not name the deployment may have given its name to another one.
      const cache = DEPLOYMENT_ID.test(deploymentId) ? caches.of(deploymentId) : undefined;
      const brought = models.map(({ model }) => model);
      return serviceOf(registered, {
        ...native,
        servicePath,
        code,
        cache,
        layer,
        image,
        models: brought,
      });
    } catch (err) {
      whole.release();
      throw err;
    }
  }

  #holdModels(pinned: ArtifactIndex["models"]) {
    const { machine, source } = this.#options;
    let saidMs = 0;
    return holdModels({ organizationId: "" }, pinned, {
      models: { hold: ({ digest }, options) => machine.models.hold(digest, source, options ?? {}) },
      signal: source.signal,
      onStep: (text) => {
        if (performance.now() - saidMs >= STEP_INTERVAL_MS) {
          saidMs = performance.now();
          this.#say(text);
        }
      },
    });
  }

  /** What takes a while, for both logs. */
  #say(message: string): void {
    const { machine, reports } = this.#options;
    machine.log.info({}, message);
    reports.line({ message, stream: "node" });
  }

  /** What the process has of GPUs. Throws while others have them. */
  #takeGpus({ revision }: ServiceCode): GpuGrant | undefined {
    const { gpus } = this.#options.machine;
    const need = revision?.gpus;
    // All workers of an agent are of one deployment.
    const holder = { organization: "", deployment: "this deployment" };
    const grant = need && gpus.take(need, holder);
    if (need !== undefined && grant === undefined) {
      throw new Error(gpus.shortage(need, holder));
    }
    return grant;
  }

  #startWorker(service: ServiceCode, gpus: readonly WorkerGpu[]): Worker {
    const { registered, reports, onChange } = this.#options;
    this.#starts += 1;
    const worker = this.#workers.start(service, `${registered.workerId}.${this.#starts}`, {
      countsOf: (manifest) => {
        this.#counts.serve(reports.metrics, manifest);
        const counts = this.#counts.worker(worker.id, manifest);
        return {
          take: (message) => {
            reports.soon();
            return counts.take(message);
          },
          end: () => counts.end(),
        };
      },
      gpus,
      onAnswering: onChange,
      onEgress: () => {
        // The node counts what goes through its own proxies.
      },
    });
    return worker;
  }

  async #load(service: ServiceCode, beganMs: number): Promise<void> {
    const { machine, reports, onChange } = this.#options;
    const { gpus } = machine;
    const grant = this.#takeGpus(service);
    let worker: Worker;
    try {
      worker = this.#startWorker(service, grant?.gpus ?? []);
    } catch (err) {
      if (grant !== undefined) {
        gpus.give(grant);
      }
      throw err;
    }
    this.#worker = worker;
    if (grant !== undefined) {
      gpus.hold(grant, worker);
    }
    void worker.exited.then(({ cause, message: reason }) => {
      if (grant !== undefined) {
        if (cause === "gpu") {
          gpus.faulted(grant);
        }
        gpus.give(grant);
      }
      if (this.#isEnding) {
        machine.log.info({ pid: worker.pid, reason }, "the process of the service has ended");
      } else if (this.#manifest) {
        machine.log.warn({ pid: worker.pid, reason }, "the process of the service ended");
        reports.line({ message: `the process of the service ended: ${reason}`, stream: "node" });
        const livedMs = performance.now() - beganMs;
        this.#backoff.ended(reason, { used: worker.used, livedMs });
      }
      onChange();
    });
    try {
      this.#manifest = await worker.load();
      this.#fault = undefined;
    } catch (err) {
      worker.discard("its service was refused");
      await worker.outputEnded;
      throw err;
    }
    onChange();
  }
}

/** Why a service cannot be started, for those who deploy it: after its reason, where there is one. */
function faultText(err: unknown): string {
  const message = err instanceof Error ? err.message : String(err);
  return err instanceof EnvironmentError ? `${err.reason}: ${message}` : message;
}

function limitsOf({ settings }: RegisterResponse) {
  return {
    graceMs: settings?.grace ? durationMs(settings.grace) : 5_000,
    readyTimeoutMs: settings?.readyTimeout ? durationMs(settings.readyTimeout) : 30_000,
    maxFileBytes: Number(settings?.maxFileBytes ?? 0),
    maxResultBytes: Number(settings?.maxResultCharacters ?? 0),
  };
}

function workerLimitsOf({ settings }: RegisterResponse): WorkerLimits {
  const { memoryMib = 0, cpus = 1, diskMib = 0, logLinesPerSecond = 0 } = settings ?? {};
  const { processes = 0 } = settings ?? {};
  return {
    memoryBytes: memoryMib * MEBIBYTE,
    cpus,
    diskBytes: diskMib * MEBIBYTE,
    logLinesPerSecond,
    processes,
  };
}

function serviceOf(
  registered: RegisterResponse,
  {
    platform,
    cache,
    layer,
    image,
    models,
    ...code
  }: Pick<ServiceCode, "servicePath" | "code"> & {
    readonly platform?: string;
    readonly cache: WorkerCache | undefined;
    readonly layer: string | undefined;
    readonly image: WorkerImage | undefined;
    readonly models: readonly WorkerModel[];
  },
): ServiceCode {
  const { revision: number, settings } = registered;
  const need = gpuNeedOf(settings ?? {}, {});
  return {
    ...code,
    selfContained: true,
    revision: {
      number,
      env: settings?.env ?? {},
      limits: workerLimitsOf(registered),
      network: {
        access: accessOf(settings?.networkAccess),
        hosts: settings?.networkHosts ?? [],
      },
      ...(need !== undefined && { gpus: need }),
      ...(cache !== undefined && { cache }),
      ...(layer !== undefined && { layer }),
      ...(image !== undefined && { image }),
      ...(models.length > 0 && { models }),
      ...(platform !== undefined && { platform }),
    },
  };
}

/** What is not known is denied. */
function accessOf(access: string | undefined): NetworkSettings["access"] {
  return access === "open" || access === "allow" ? access : "none";
}
