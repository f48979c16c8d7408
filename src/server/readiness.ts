import type { HealthSource } from "./rpc/health.ts";

/** The readiness of this node, the same for all its services, for probes and for `grpc.health.v1`. */
export class Readiness implements HealthSource {
  readonly #listeners = new Set<() => void>();
  #ready = false;
  #reason: string | undefined;

  /** `reason`: why it is not, as the end of "not ready: …". */
  set(ready: boolean, reason?: string): void {
    this.#reason = ready ? undefined : reason;
    if (ready !== this.#ready) {
      this.#ready = ready;
      for (const listener of this.#listeners) {
        listener();
      }
    }
  }

  status(): "SERVING" | "NOT_SERVING" {
    return this.#ready ? "SERVING" : "NOT_SERVING";
  }

  get reason(): string | undefined {
    return this.#reason;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
