/** How calls and streams end that the caller's deadline or the server's end cuts short. */
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { expect, it } from "vitest";
import { ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { Health } from "../../../gen/grpc/health/v1/health_pb.js";
import { EndpointService } from "../../../gen/tessera/v1/endpoint_pb.js";
import { serve } from "./served.ts";

function clients(baseUrl: string) {
  return {
    grpc: createClient(EndpointService, createGrpcTransport({ baseUrl })),
    connect: createClient(EndpointService, createConnectTransport({ baseUrl, httpVersion: "1.1" })),
    json: createClient(
      EndpointService,
      createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
    ),
  };
}

async function read(messages: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of messages) {
    // Its end is what counts.
  }
}

/** The code and the reason of a call that fails. */
async function failure(call: Promise<unknown>): Promise<unknown[]> {
  const found = ConnectError.from(await call.catch((thrown: unknown) => thrown));
  return [Code[found.code], found.findDetails(ErrorInfoSchema)[0]?.reason];
}

it("a deadline is counted as what was answered, when it was answered", async () => {
  await using served = await serve("deaf");
  const { grpc, connect, json } = clients(served.origin);
  // Not the option of the library, which ends a call by its own clock, before the answer comes.
  const headers = { "connect-timeout-ms": "200", "grpc-timeout": "200m" };
  const calls = [grpc, connect, json].map((client) =>
    client.callEndpoint({ endpoint: "call" }, { headers }),
  );
  const streams = [grpc, connect].map((client) =>
    read(client.streamEndpoint({ endpoint: "pieces" }, { headers })),
  );
  const ends = await Promise.all([...calls, ...streams].map(failure));
  expect(ends).toEqual(Array.from({ length: 5 }, () => ["DeadlineExceeded", "CALL_TIMEOUT"]));
  const { text } = await served.get("/metrics");
  const counts = text.matchAll(
    /^tessera_requests_total\{(?=[^}]*code="(\w+)")(?=[^}]*endpoint="(\w+)")[^}]*protocol="(\w+)"[^}]*\} (\d+)$/gm,
  );
  expect([...counts].map(([, ...facts]) => facts.join(" ")).toSorted()).toEqual([
    "deadline_exceeded call connect 2",
    "deadline_exceeded call grpc 1",
    "deadline_exceeded pieces connect 1",
    "deadline_exceeded pieces grpc 1",
  ]);
});

it("streams end with SHUTTING_DOWN when the server does, whatever their functions do", async () => {
  await using served = await serve("deaf");
  const { grpc, connect } = clients(served.origin);
  const health = createClient(Health, createGrpcTransport({ baseUrl: served.origin }));
  const streams = [
    ...[grpc, connect].map((client) => client.streamEndpoint({ endpoint: "pieces" })),
    health.watch({}),
  ].map((each) => each[Symbol.asyncIterator]());
  await Promise.all(streams.map((each) => each.next()));
  const ends = streams.map((each) => failure(read({ [Symbol.asyncIterator]: () => each })));
  await served.stop();
  expect(await Promise.all(ends)).toEqual(
    Array.from({ length: 3 }, () => ["Unavailable", "SHUTTING_DOWN"]),
  );
});
