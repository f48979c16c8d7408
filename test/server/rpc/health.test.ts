import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { expect, it } from "vitest";
import {
  Health,
  HealthCheckResponse_ServingStatus as Status,
} from "../../../gen/grpc/health/v1/health_pb.js";
import { TaskService } from "../../../gen/tessera/v1/task_pb.js";
import { FakeHealth, startServer } from "./server.ts";

function clientOf(origin: string) {
  return createClient(Health, createConnectTransport({ baseUrl: origin, httpVersion: "1.1" }));
}

it("Check and List say how the server and its services are", async () => {
  const health = new FakeHealth();
  await using server = await startServer({}, { health });
  const client = clientOf(server.origin);
  health.set(TaskService.typeName, "NOT_SERVING");
  expect((await client.check({})).status).toBe(Status.SERVING);
  expect((await client.check({ service: TaskService.typeName })).status).toBe(Status.NOT_SERVING);
  const { statuses } = await client.list({});
  expect(Object.entries(statuses).map(([name, { status }]) => [name, status])).toEqual([
    ["", Status.SERVING],
    [TaskService.typeName, Status.NOT_SERVING],
  ]);
});

it("Check of a service that does not exist is not found", async () => {
  await using server = await startServer({});
  const err = ConnectError.from(
    await clientOf(server.origin)
      .check({ service: "no.Service" })
      .catch((e) => e),
  );
  expect(err.code).toBe(Code.NotFound);
});

it("Watch gives the status at once and then every change of it", async () => {
  const health = new FakeHealth();
  await using server = await startServer({}, { health });
  const watch = clientOf(server.origin).watch({ service: "later.Service" })[Symbol.asyncIterator]();
  const next = async () => (await watch.next()).value?.status;
  expect(await next()).toBe(Status.SERVICE_UNKNOWN);
  health.set("", "NOT_SERVING");
  health.set("later.Service", "SERVING");
  expect(await next()).toBe(Status.SERVING);
  health.set("later.Service", "NOT_SERVING");
  expect(await next()).toBe(Status.NOT_SERVING);
  await watch.return?.();
});
