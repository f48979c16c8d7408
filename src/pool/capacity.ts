import type { EndpointManifest } from "../protocol/manifest.ts";

/**
 * What a worker can still take. Each endpoint has slots of its own, so that
 * one with a long queue does not keep the others waiting. What runs beside a
 * call that has to be killed loses its worker, but nothing else: it is tried
 * again without that counting against it.
 */
export class Capacity {
  readonly #running = new Map<string, number>();

  /** How many more calls of the endpoint fit in. */
  free(endpoint: EndpointManifest): number {
    return endpoint.concurrency - this.taken(endpoint);
  }

  /** How many calls of the endpoint have a slot. */
  taken({ name }: EndpointManifest): number {
    return this.#running.get(name) ?? 0;
  }

  /** True when nothing is taken. */
  get idle(): boolean {
    return this.#running.size === 0;
  }

  take({ name }: EndpointManifest): void {
    this.#running.set(name, (this.#running.get(name) ?? 0) + 1);
  }

  giveBack({ name }: EndpointManifest): void {
    const left = (this.#running.get(name) ?? 0) - 1;
    if (left > 0) {
      this.#running.set(name, left);
    } else {
      this.#running.delete(name);
    }
  }
}
