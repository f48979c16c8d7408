/** A revision of a service that this node runs: its endpoints, and what becomes of older tasks. */
import { problem } from "../errors.ts";
import type { ServiceCode } from "../pool/options.ts";
import type { EndpointManifest, ServiceManifest } from "../protocol/manifest.ts";
import { ArgumentsReader } from "../service/input/arguments.ts";
import type { ClaimedTask } from "../storage/storage.ts";
import type { Task, TaskFailure } from "../tasks/task.ts";

/** An endpoint with the reader of its arguments. */
export interface FoundEndpoint {
  readonly manifest: EndpointManifest;
  readonly reader: ArgumentsReader;
}

/** By now every node has the newest revision, whatever its clock says. */
const EVERYWHERE_AFTER_MS = 300_000;

export class Revision {
  /** undefined where a service has no revisions, because it is developed. */
  readonly number: number | undefined;
  readonly manifest: ServiceManifest;
  readonly #activeFromMs: number;
  readonly #endpoints: ReadonlyMap<string, FoundEndpoint>;

  /** Throws when a schema cannot be compiled. */
  constructor(service: ServiceCode, manifest: ServiceManifest, activeFromMs: number) {
    this.number = service.revision?.number;
    this.manifest = manifest;
    this.#activeFromMs = activeFromMs;
    this.#endpoints = new Map(
      manifest.endpoints.map((endpoint) => [
        endpoint.name,
        { manifest: endpoint, reader: new ArgumentsReader(endpoint) },
      ]),
    );
  }

  find(endpoint: string): FoundEndpoint | undefined {
    return this.#endpoints.get(endpoint);
  }

  /** Throws ENDPOINT_NOT_FOUND; `deployment` is the name of the whole. */
  endpoint(name: string, deployment: string): FoundEndpoint {
    const found = this.#endpoints.get(name);
    if (found === undefined) {
      const names = this.manifest.endpoints.map((endpoint) => endpoint.name).join(", ");
      throw problem(
        "ENDPOINT_NOT_FOUND",
        `deployment ${deployment} has no endpoint ${JSON.stringify(name.slice(0, 64))}; it has: ${names}`,
      );
    }
    return found;
  }

  /** A task endpoint; throws ENDPOINT_NOT_A_TASK for an api. */
  taskEndpoint(name: string, deployment: string): FoundEndpoint {
    const found = this.endpoint(name, deployment);
    if (found.manifest.kind !== "task") {
      const message = `endpoint ${name} is an api and answers in the call: POST /${name}`;
      throw problem("ENDPOINT_NOT_A_TASK", message);
    }
    return found;
  }

  /** True for an endpoint whose tasks this revision does not run. */
  lacks(endpoint: string): boolean {
    return this.#endpoints.get(endpoint)?.manifest.kind !== "task";
  }

  /**
   * Why a task that was submitted under an earlier revision cannot run on this
   * one; undefined when it can. Tasks that came later were checked when they
   * came, or are for a revision that this node does not know yet.
   */
  refusal({ task, arguments: payload }: ClaimedTask, nowMs: number): TaskFailure | undefined {
    if (this.number === undefined || !this.#isOlder(task, nowMs)) {
      return undefined;
    }
    const { endpoint } = task;
    const found = this.#endpoints.get(endpoint);
    if (found === undefined) {
      return failed(`revision ${this.number} has no endpoint ${endpoint}`);
    }
    if (found.manifest.kind !== "task") {
      return failed(`endpoint ${endpoint} is an api in revision ${this.number} and runs no tasks`);
    }
    const fault = found.reader.faultOf(payload);
    if (fault === undefined) {
      return undefined;
    }
    const place = fault.field === "" ? "the arguments" : `argument ${JSON.stringify(fault.field)}`;
    const message = `the arguments do not fit endpoint ${endpoint} of revision ${this.number}: ${place} ${fault.description}`;
    return { ...failed(message), violations: [fault] };
  }

  #isOlder({ createdAtMs }: Task, nowMs: number): boolean {
    return createdAtMs < this.#activeFromMs || createdAtMs < nowMs - EVERYWHERE_AFTER_MS;
  }
}

function failed(message: string): TaskFailure {
  return { reason: "error", code: "failed_precondition", message };
}
