/** Starts the workers of a deployment: rights, limits, environment, scratch folder, output. */

import type { Log } from "../log/log.ts";
import type { Keepers } from "../pool/calls/transfers.ts";
import { EgressPolicy } from "../pool/egress/policy.ts";
import { EgressProxy } from "../pool/egress/proxy.ts";
import type { WorkerModel } from "../pool/launch/models.ts";
import { type LaunchOf, launchersFor } from "../pool/launchers.ts";
import { LocalWorker } from "../pool/local-worker.ts";
import type { OutputStream } from "../pool/process.ts";
import type { Worker } from "../pool/worker.ts";
import type { ServiceCode, WorkerOptions } from "../pool/worker-options.ts";
import { type WorkerAccess, workerRights } from "./permissions.ts";
import type { ScratchFolders } from "./scratch.ts";
import { withShownPaths } from "./shown-paths.ts";

/** Last lines of a worker's output that are kept, for people who ask why it failed. */
const MAX_TAIL_LINES = 50;
/** Last characters of a worker's output that are kept. */
const MAX_TAIL_CHARACTERS = 8_192;

export interface WorkersOptions {
  readonly log: Log;
  /** Time between the abort of a call and the kill of its worker. */
  readonly graceMs: number;
  readonly readyTimeoutMs: number;
  readonly maxResultBytes: number;
  readonly maxFileBytes: number;
  /** The file store for each kind of endpoint. */
  readonly files: Keepers;
  /** Additional rights under `tessera serve`. Default: none. */
  readonly workerAccess?: WorkerAccess | undefined;
  /** The models of a service that has no revisions. Default: none. */
  readonly models?: readonly WorkerModel[] | undefined;
  /** How the workers of a service are started. Default: without a sandbox. */
  readonly launchOf?: LaunchOf | undefined;
  /**
   * Host rules of the operator: what workers in the kernel's sandbox reach although it is not
   * public. Undefined: workers have the network of the machine.
   */
  readonly allowedEgress?: readonly string[] | undefined;
  /** Receives the output of workers, line by line. Default: the node's log. */
  readonly onOutput?: ((line: string, from: OutputSource) => void) | undefined;
}

/** The origin of a line of output. */
export interface OutputSource {
  readonly workerId: string;
  /** `node` for a line of the node about the output. */
  readonly stream: OutputStream;
  /** Undefined where a service has no revisions. */
  readonly revision: number | undefined;
}

interface WorkerHooks extends Pick<WorkerOptions, "countsOf" | "gpus"> {
  /** Its `isBlocked` or `isDraining` has changed. */
  onAnswering(): void;
  /** It connected outward, or was refused. */
  onEgress(decision: "allowed" | "refused"): void;
}

export class Workers {
  readonly #options: WorkersOptions;
  readonly #scratch: ScratchFolders;
  readonly #tails = new WeakMap<ServiceCode, OutputTail>();

  constructor(options: WorkersOptions, scratch: ScratchFolders) {
    this.#options = options;
    this.#scratch = scratch;
  }

  /** The last lines that workers of this service wrote. */
  lastLines(service: ServiceCode): readonly string[] {
    return this.#tails.get(service)?.lines ?? [];
  }

  /** Starts a worker, in a scratch folder that is removed when it has ended. */
  start(service: ServiceCode, workerId: string, hooks: WorkerHooks): Worker {
    let cacheUse: Disposable | undefined;
    const common = this.#optionsFor(service, workerId, hooks.gpus);
    const egress = this.#openEgress(service, workerId, { ...hooks, ...common });
    const options = { ...common, countsOf: hooks.countsOf, egress };
    const cleanUp = async (pid: number | undefined): Promise<void> => {
      cacheUse?.[Symbol.dispose]();
      try {
        await egress?.[Symbol.asyncDispose]();
        await this.#scratch.remove(options.scratchFolder, pid);
      } catch (err) {
        const about = { err, worker: workerId };
        this.#options.log.warn(about, "the folder of a worker could not be removed yet");
      }
    };
    try {
      cacheUse = service.revision?.cache?.use();
      const worker = new LocalWorker(workerId, options, hooks.onAnswering);
      void worker.exited.then(() => cleanUp(worker.pid));
      return worker;
    } catch (err) {
      void cleanUp(undefined);
      throw err;
    }
  }

  /** The options of a new worker. Creates its scratch folder. */
  #optionsFor(service: ServiceCode, workerId: string, gpus: WorkerHooks["gpus"]): WorkerOptions {
    const { graceMs, readyTimeoutMs, maxResultBytes, maxFileBytes, files } = this.#options;
    const { workerAccess, log, models, launchOf = launchersFor() } = this.#options;
    const { revision } = service;
    const cache = revision?.cache;
    const scratchFolder = this.#scratch.create();
    // The rights in `workerAccess` are for the operator's own service, not for deployments.
    const access = revision
      ? {
          read: (revision.models ?? []).map(({ path }) => path),
          addons: revision.platform !== undefined,
          threads: false,
          processes: revision.limits.processes > 0,
          env: {},
        }
      : workerAccess;
    return {
      service,
      scratchFolder,
      cache,
      // Node's SQLite opens files without asking the permission model.
      rights: workerRights(
        { ...service, scratchFolder, cacheFolder: cache?.path, sqlite: revision === undefined },
        access,
      ),
      launch: launchOf(service),
      env: revision?.env ?? workerAccess?.env ?? {},
      limits: revision?.limits,
      gpus,
      layer: revision?.layer,
      image: revision?.image,
      models: revision?.models ?? models,
      maxResultBytes,
      maxFileBytes,
      keepers: files,
      graceMs,
      readyTimeoutMs: revision?.readyTimeoutMs ?? readyTimeoutMs,
      onSpawn: (pid) => this.#scratch.record(pid),
      onOutput: (line, stream) => this.#output(line, service, { workerId, stream }),
      onFault: (err) => {
        const about = { err, worker: workerId, revision: revision?.number };
        log.error(about, "a message of a worker could not be taken; the worker is ended");
      },
    };
  }

  /** The egress proxy of a worker that has no network of its own. */
  #openEgress(
    service: ServiceCode,
    workerId: string,
    { scratchFolder, onEgress }: Pick<WorkerHooks, "onEgress"> & { readonly scratchFolder: string },
  ): EgressProxy | undefined {
    const { allowedEgress: allowed, log } = this.#options;
    const network = service.revision?.network;
    if (allowed === undefined || network === undefined || network.access === "none") {
      return undefined;
    }
    const proxy = new EgressProxy({
      // Beside its scratch folder, where it cannot be replaced.
      path: `${scratchFolder}.sock`,
      policy: new EgressPolicy({ network, allowed }),
      onDecision: onEgress,
      onLine: (line) => this.#output(line, service, { workerId, stream: "node" }),
    });
    // Its socket is there at once; a worker whose proxy has none does not start.
    void proxy.start().catch((err: unknown) => {
      log.error({ err, worker: workerId }, "the proxy to the network could not be started");
    });
    return proxy;
  }

  #output(written: string, service: ServiceCode, from: Omit<OutputSource, "revision">): void {
    const line = withShownPaths(written, service);
    let tail = this.#tails.get(service);
    if (tail === undefined) {
      tail = new OutputTail();
      this.#tails.set(service, tail);
    }
    tail.add(line);
    const { log, onOutput } = this.#options;
    if (onOutput) {
      onOutput(line, { ...from, revision: service.revision?.number });
    } else {
      log.info({ from: "service" }, line);
    }
  }
}

/** A buffer of the last lines of output, which help people see why a service failed. */
class OutputTail {
  #lines: string[] = [];
  #length = 0;

  add(line: string): void {
    this.#lines.push(line);
    this.#length += line.length;
    while (
      this.#lines.length > MAX_TAIL_LINES ||
      (this.#length > MAX_TAIL_CHARACTERS && this.#lines.length > 1)
    ) {
      this.#length -= this.#lines.shift()?.length ?? 0;
    }
  }

  get lines(): readonly string[] {
    return [...this.#lines];
  }
}
