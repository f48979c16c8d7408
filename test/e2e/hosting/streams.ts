/** Streams of a deployment of `services/endless.ts`, in every protocol, and how they end. */
import { request as httpRequest } from "node:http";
import { type CallOptions, ConnectError, createClient } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { DeploymentService } from "../../../gen/tessera/v1/deployment_pb.js";
import { EndpointService } from "../../../gen/tessera/v1/endpoint_pb.js";
import { OrganizationTaskService } from "../../../gen/tessera/v1/organization_task_pb.js";
import { TaskService } from "../../../gen/tessera/v1/task_pb.js";
import type { Platform } from "../start/platform.ts";

/** What a stream may last beyond its credential. */
const MAX_LATE_MS = 5_000;

export const TARGET = { "tessera-deployment": "acme/endless" };

export type Headers = Readonly<Record<string, string>>;

/** A stream that has said something; `ended` is the reason of its error, empty for none. */
export interface Opened {
  readonly ended: Promise<string>;
  close(): void;
}

/** Streams of RPCs. */
const transports = (baseUrl: string) => {
  return {
    grpc: createGrpcTransport({ baseUrl }),
    web: createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
    connect: createConnectTransport({ baseUrl, httpVersion: "1.1" }),
    json: createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
  };
};

type Rpc = (options: CallOptions) => AsyncIterable<unknown>;

async function openRpc(rpc: Rpc, headers: Headers): Promise<Opened> {
  const controller = new AbortController();
  const { signal } = controller;
  const messages = rpc({ headers: { ...headers, ...TARGET }, signal })[Symbol.asyncIterator]();
  await messages.next();
  const drain = async (): Promise<string> => {
    try {
      while ((await messages.next()).done !== true) {
        // The rest of it.
      }
      return "";
    } catch (thrown) {
      const [info] = ConnectError.from(thrown).findDetails(ErrorInfoSchema);
      return info?.reason ?? String(thrown);
    }
  };
  return { ended: drain(), close: () => controller.abort() };
}

/** Streams of HTTP, whose last event or line has the error. */
export function openHttp(
  { started: { port } }: Platform,
  path: string,
  { headers, method = "GET" }: { readonly headers: Headers; readonly method?: string },
): Promise<Opened> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, path, method, agent: false as const };
    const sent = { ...headers, ...TARGET, "content-type": "application/json" };
    const req = httpRequest({ ...options, headers: sent }, (res) => {
      let text = "";
      const ended = new Promise<string>((end) => {
        res.on("end", () => end([...text.matchAll(/"reason":\s*"([A-Z_]+)"/g)].at(-1)?.[1] ?? ""));
        res.on("error", (err) => end(err.message));
      });
      const close = (): void => void req.destroy();
      res.on("data", (chunk) => {
        text += chunk;
        resolve({ ended, close });
      });
    });
    req.on("error", reject).end(method === "POST" ? "{}" : undefined);
  });
}

/** Those of a deployment, which ask for access to its endpoints. */
export function endpointStreams(
  platform: Platform,
  { taskId, headers }: { readonly taskId: string; readonly headers: Headers },
): Record<string, Promise<Opened>> {
  const { grpc, web, connect, json } = transports(platform.url);
  const events = { accept: "text/event-stream" };
  return {
    "gRPC StreamEndpoint": openRpc(
      (options) =>
        createClient(EndpointService, grpc).streamEndpoint({ endpoint: "drip" }, options),
      headers,
    ),
    "Connect StreamEndpoint": openRpc(
      (options) =>
        createClient(EndpointService, json).streamEndpoint({ endpoint: "drip" }, options),
      headers,
    ),
    "gRPC StreamTask": openRpc(
      (options) => createClient(TaskService, grpc).streamTask({ taskId }, options),
      headers,
    ),
    "gRPC-Web WatchTask": openRpc(
      (options) => createClient(TaskService, web).watchTask({ taskId }, options),
      headers,
    ),
    "binary Connect WatchTask": openRpc(
      (options) => createClient(TaskService, connect).watchTask({ taskId }, options),
      headers,
    ),
    "REST :watch": openHttp(platform, `/api/v1/tasks/${taskId}:watch`, { headers: headers }),
    "REST :stream as events": openHttp(platform, `/api/v1/tasks/${taskId}:stream`, {
      headers: { ...headers, ...events },
    }),
    "/events": openHttp(platform, `/trickle/events?task_id=${taskId}`, { headers: headers }),
    "/stream": openHttp(platform, `/trickle/stream?task_id=${taskId}`, { headers: headers }),
    "a function's lines": openHttp(platform, "/drip", { headers: headers, method: "POST" }),
    "a function's events": openHttp(platform, "/drip", {
      headers: { ...headers, ...events },
      method: "POST",
    }),
  };
}

/** Those of developers. */
export function developerStreams(
  platform: Platform,
  headers: Headers,
): Record<string, Promise<Opened>> {
  const { grpc, web } = transports(platform.url);
  const follow = { deployment: "endless", follow: true, organization: "acme" };
  return {
    "gRPC WatchDeploymentLogs": openRpc(
      (options) => createClient(DeploymentService, grpc).watchDeploymentLogs(follow, options),
      headers,
    ),
    "REST logs": openHttp(platform, "/api/v1/deployments/endless/logs?follow=true", {
      headers: headers,
    }),
    "gRPC WatchDeployments": openRpc(
      (options) =>
        createClient(DeploymentService, grpc).watchDeployments({ organization: "acme" }, options),
      headers,
    ),
    "gRPC-Web WatchTasks": openRpc(
      (options) =>
        createClient(OrganizationTaskService, web).watchTasks({ organization: "acme" }, options),
      headers,
    ),
    "REST tasks:watch": openHttp(platform, "/api/v1/organizations/acme/tasks:watch", {
      headers: headers,
    }),
  };
}

export async function open(
  streams: Record<string, Promise<Opened>>,
): Promise<Record<string, Opened>> {
  const names = Object.keys(streams);
  const opened = await Promise.all(Object.values(streams));
  return Object.fromEntries(names.map((name, index) => [name, opened[index] as Opened]));
}

/** The reasons with which streams ended in time; "goes on" for those that did not. */
export async function reasonsOf(opened: Record<string, Opened>): Promise<Record<string, string>> {
  const late = new Promise<string>((resolve) =>
    setTimeout(() => resolve("goes on"), MAX_LATE_MS).unref(),
  );
  const reasons = await Promise.all(
    Object.entries(opened).map(async ([name, { ended }]) => [
      name,
      await Promise.race([ended, late]),
    ]),
  );
  for (const { close } of Object.values(opened)) {
    close();
  }
  return Object.fromEntries(reasons);
}

export function all(opened: Record<string, Opened>, reason: string): Record<string, string> {
  return Object.fromEntries(Object.keys(opened).map((name) => [name, reason]));
}
