/** The health checks of `grpc.health.v1`: whether the server and each of its services take calls. */
import {
  Health,
  HealthCheckResponse_ServingStatus as Status,
} from "../../../gen/grpc/health/v1/health_pb.js";
import { problem, type Reason } from "../../errors.ts";
import { register, type ServiceRegistration } from "./engine/invoker.ts";

/** What keeps a server from serving. */
export interface Hindrance {
  readonly reason: Extract<Reason, "STORAGE_UNAVAILABLE" | "SHUTTING_DOWN" | "NO_WORKER">;
  /** The end of "not ready: …". */
  readonly text: string;
}

/** The source of the server's health. */
export interface HealthSource {
  /** Status of a service by its full name, or of the server for an empty name; undefined if there is no such service. */
  status(service: string): "SERVING" | "NOT_SERVING" | undefined;
  /** Why the server is not serving, for the answer of `/readyz`; undefined where nobody knows more. */
  readonly hindrance?: Hindrance | undefined;
  /** Calls back after every change of any status, until the returned function is called. */
  onChange(listener: () => void): () => void;
}

/** @param services full names of the services that List returns in addition to the server itself. */
export function createHealthService(
  health: HealthSource,
  services: readonly string[],
): ServiceRegistration {
  const statusOf = (service: string): Status | undefined => {
    const status = health.status(service);
    return status === undefined ? undefined : Status[status];
  };
  return register(Health, {
    check({ service }) {
      const status = statusOf(service);
      if (status === undefined) {
        throw problem("ROUTE_NOT_FOUND", `there is no service "${service}" here`);
      }
      return { status };
    },
    list() {
      const entries = ["", ...services].map((service) => {
        return [service, { status: statusOf(service) ?? Status.UNKNOWN }] as const;
      });
      return { statuses: Object.fromEntries(entries) };
    },
    async *watch({ service }, { signal }) {
      let last: Status | undefined;
      for await (const _ of changes(health, signal)) {
        const status = statusOf(service) ?? Status.SERVICE_UNKNOWN;
        if (status !== last) {
          last = status;
          yield { status };
        }
      }
    },
  });
}

/** Yields at once and then after every change, until the signal aborts. Coalesces changes that pile up. */
async function* changes(health: HealthSource, signal: AbortSignal): AsyncGenerator<void> {
  let changed = Promise.withResolvers<void>();
  const wake = () => changed.resolve();
  const stop = health.onChange(wake);
  signal.addEventListener("abort", wake);
  try {
    while (!signal.aborted) {
      changed = Promise.withResolvers<void>();
      yield;
      await changed.promise;
    }
  } finally {
    stop();
    signal.removeEventListener("abort", wake);
  }
}
