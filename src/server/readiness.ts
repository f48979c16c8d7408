import type { HealthSource, Hindrance } from "./rpc/health.ts";

/** The readiness of this node, the same for all its services, for probes and for `grpc.health.v1`. */
export class Readiness implements HealthSource {
  readonly #listeners = new Set<() => void>();
  #ready = false;
  #hindrance: Hindrance | undefined;

  set(ready: boolean, hindrance?: Hindrance): void {
    this.#hindrance = ready ? undefined : hindrance;
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

  get hindrance(): Hindrance | undefined {
    return this.#hindrance;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
