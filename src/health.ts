import { EndpointService } from "../gen/tessera/v1/endpoint_pb.js";
import { TaskService } from "../gen/tessera/v1/task_pb.js";
import type { HealthSource } from "./rpc/health.ts";

const SERVICES = new Set(["", TaskService.typeName, EndpointService.typeName]);

/** Whether this node takes calls, for probes and for `grpc.health.v1`. */
export class Readiness implements HealthSource {
  readonly #listeners = new Set<() => void>();
  #ready = false;

  set(ready: boolean): void {
    if (ready !== this.#ready) {
      this.#ready = ready;
      for (const listener of this.#listeners) {
        listener();
      }
    }
  }

  status(service: string): "SERVING" | "NOT_SERVING" | undefined {
    if (!SERVICES.has(service)) {
      return undefined;
    }
    return this.#ready ? "SERVING" : "NOT_SERVING";
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
