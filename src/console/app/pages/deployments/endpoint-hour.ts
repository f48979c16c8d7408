/** The last hour of an endpoint, in numbers. */
import type { DeploymentEndpointJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import type { DeploymentTaskStatsJson } from "../../../../../gen/tessera/v1/organization_task_pb.js";
import { durationMs } from "../../ui/duration.ts";
import { endedOf } from "./state-words.ts";

export interface EndpointHour {
  /** Calls that were answered; of a task endpoint, tasks that ended. */
  readonly count: number;
  readonly failed: number;
  /** The 95th percentile of how long they took; undefined where it is not known for all of them together. */
  readonly p95Ms: number | undefined;
}

/** Calls of an api, or of all routes of a mounted server; tasks of a task endpoint. */
export function endpointHour(
  { name = "", kind }: DeploymentEndpointJson,
  { endpoints = [], endpointCalls = [] }: DeploymentTaskStatsJson,
): EndpointHour {
  if (kind === "ENDPOINT_KIND_TASK") {
    const stats = endpoints.find(({ endpoint }) => endpoint === name)?.stats ?? {};
    return { count: endedOf(stats), failed: stats.failed ?? 0, p95Ms: msOf(stats.runTime?.p95) };
  }
  const isServer = kind === "ENDPOINT_KIND_SERVER";
  const own = endpointCalls.filter(({ endpoint = "" }) =>
    isServer ? isBelow(endpoint, name) : endpoint === name,
  );
  const sumOf = (field: "calls" | "failedCalls"): number =>
    own.reduce((sum, one) => sum + (one[field] ?? 0), 0);
  return {
    count: sumOf("calls"),
    failed: sumOf("failedCalls"),
    p95Ms: own.length === 1 ? msOf(own[0]?.callTime?.p95) : undefined,
  };
}

const msOf = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : durationMs(text);

/** True for the path of a server and for the paths below it; `/` has all. */
const isBelow = (path: string, mount: string): boolean =>
  path === mount || path.startsWith(mount.endsWith("/") ? mount : `${mount}/`);
