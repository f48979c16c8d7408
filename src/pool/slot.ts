import type { EndpointManifest } from "../protocol/manifest.ts";
import type { Execution, ExecutionListener } from "./execution.ts";
import type { ExecuteOptions } from "./options.ts";
import type { WorkerProcess } from "./worker.ts";

/** Where a call ran, for the log. */
export interface RanIn {
  readonly worker: string;
  /** Absent where a service has no revisions. */
  readonly revision?: number;
}

/** The right to run one call of an endpoint in a worker. */
export class Slot {
  readonly workerId: string;
  readonly #worker: WorkerProcess;
  readonly #endpoint: EndpointManifest;
  #held = true;

  get endpoint(): string {
    return this.#endpoint.name;
  }

  get ranIn(): RanIn {
    const { revision } = this.#worker;
    return { worker: this.workerId, ...(revision !== undefined && { revision }) };
  }

  constructor(worker: WorkerProcess, endpoint: EndpointManifest) {
    this.workerId = worker.id;
    this.#worker = worker;
    this.#endpoint = endpoint;
    worker.capacity.take(endpoint);
  }

  execute(
    call: Omit<ExecuteOptions, "endpoint" | "kind" | "timeoutMs">,
    listener: ExecutionListener,
  ): Execution {
    const { name, kind, timeoutMs } = this.#endpoint;
    return this.#worker.execute({ ...call, endpoint: name, kind, timeoutMs }, listener);
  }

  /** Gives the slot back; again is harmless. */
  release(): void {
    if (this.#held) {
      this.#held = false;
      this.#worker.release(this.#endpoint);
    }
  }
}
