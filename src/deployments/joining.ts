/**
 * How a worker on another machine joins a deployment, with the attempts that it runs already: a
 * node goes on with those that another node began, and gives those back to the queue that the
 * worker does not have.
 */
import { countsCalls, WorkerSlot } from "../pool/calls/execution.ts";
import type { Pool } from "../pool/pool.ts";
import type { HeldCall } from "../pool/remote/messages.ts";
import type { RemoteWorker } from "../pool/remote/remote-worker.ts";
import type { CountsReceiver } from "../pool/worker-options.ts";
import type { EndpointManifest, ServiceManifest } from "../protocol/manifest.ts";
import type { Queue } from "../queue/queue.ts";
import type { LeasedTask } from "../storage/leases.ts";
import { workerIdOn } from "../tasks/worker-id.ts";
import type { DeploymentCounts } from "./counts.ts";
import type { DeploymentOptions } from "./options.ts";
import type { WorkerList } from "./worker-list.ts";
import type { OutputSource } from "./workers.ts";

/** Least time that is left to an attempt when another node goes on with it. */
const MIN_ADOPTED_TIMEOUT_MS = 1_000;

/** What a worker on another machine is made with. */
interface RemoteOptions
  extends Pick<
    DeploymentOptions,
    "graceMs" | "readyTimeoutMs" | "maxResultBytes" | "maxFileBytes"
  > {
  readonly keepers: DeploymentOptions["files"];
  /** The id of another worker of this node. */
  newId(): string;
  countsOf(workerId: string): (manifest: ServiceManifest) => CountsReceiver;
  onOutput(line: string, from: OutputSource): void;
  /** Slots of a worker became free. */
  onCapacity(): void;
}

interface JoiningOptions {
  readonly options: DeploymentOptions;
  readonly pool: Pool;
  readonly queue: () => Queue;
  readonly counts: DeploymentCounts;
  readonly list: WorkerList;
  /** An endpoint of the serving revision. */
  find(endpoint: string): EndpointManifest | undefined;
  onCapacity(): void;
}

export class Joining {
  readonly #options: JoiningOptions;
  /** What a worker is made with. */
  readonly remote: RemoteOptions;

  constructor(options: JoiningOptions) {
    this.#options = options;
    const { counts, onCapacity } = options;
    const { nodeId, newId, onOutput, files: keepers, ...all } = options.options;
    const { graceMs, readyTimeoutMs, maxResultBytes, maxFileBytes } = all;
    this.remote = {
      ...{ graceMs, readyTimeoutMs, maxResultBytes, maxFileBytes, keepers, onCapacity },
      newId: () => workerIdOn(nodeId, newId()),
      countsOf: (workerId) => (manifest) => counts.worker(workerId, manifest),
      onOutput: (line, from) => onOutput?.(line, from),
    };
  }

  /**
   * Takes in a worker that has these calls, of the attempts that were under its lease. Returns
   * the numbers of the calls that go on.
   */
  async join(
    worker: RemoteWorker,
    leased: readonly LeasedTask[] = [],
    held: readonly HeldCall[] = [],
  ): Promise<number[]> {
    const kept = leased.flatMap((one) => this.#adopt(worker, one, held) ?? []);
    await this.#options.pool.join(this.#options.list.began(worker));
    return kept;
  }

  #adopt(worker: RemoteWorker, leased: LeasedTask, held: readonly HeldCall[]): number | undefined {
    const { find, options } = this.#options;
    const queue = this.#options.queue();
    const { task } = leased;
    const endpoint = find(task.endpoint);
    const call = held.find(
      ({ taskId, attempt }) => taskId === task.taskId && attempt === task.attempt,
    );
    // What streams cannot be resumed.
    if (endpoint === undefined || call === undefined || endpoint.stream !== undefined) {
      queue.giveBack(leased);
      return undefined;
    }
    const slot = new WorkerSlot(worker, endpoint);
    const nowMs = options.now();
    const ranMs = nowMs - (task.startedAtMs ?? nowMs);
    const leftMs = Math.max(MIN_ADOPTED_TIMEOUT_MS, endpoint.timeoutMs - ranMs);
    const { abortGraceMs } = endpoint;
    const adopted = { ...call, abortGraceMs, isCounted: countsCalls(endpoint) };
    queue.adopt({ ...leased, endpoint, slot }, (listener) =>
      worker.adopt(adopted, leftMs, listener),
    );
    return call.id;
  }
}
