import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { describe, expect, it } from "vitest";
import { ServerReflection } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { startServer } from "./server.ts";

type Ask = { case: string; value: unknown };

/** Asks all of it on one stream, and gives the answers in order. */
async function ask(service: typeof ServerReflection | typeof ServerReflectionAlpha, asks: Ask[]) {
  await using server = await startServer({}, { http2: true });
  const sessionManager = new Http2SessionManager(server.origin);
  const transport = createGrpcTransport({ baseUrl: server.origin, sessionManager });
  const client = createClient(service as typeof ServerReflection, transport);
  const requests = (async function* () {
    for (const messageRequest of asks) {
      yield { host: "h", messageRequest } as never;
    }
  })();
  const answers = [];
  for await (const answer of client.serverReflectionInfo(requests)) {
    expect(answer.validHost).toBe("h");
    expect(answer.originalRequest?.host).toBe("h");
    answers.push(answer.messageResponse);
  }
  sessionManager.abort();
  return answers;
}

function files(answer: Awaited<ReturnType<typeof ask>>[number] | undefined) {
  return answer?.case === "fileDescriptorResponse"
    ? answer.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes))
    : [];
}

describe.each([
  ["v1", ServerReflection],
  ["v1alpha", ServerReflectionAlpha],
] as const)("reflection %s", (_version, service) => {
  it("lists the services, itself included", async () => {
    const [answer] = await ask(service, [{ case: "listServices", value: "" }]);
    expect(
      answer?.case === "listServicesResponse" && answer.value.service.map((one) => one.name),
    ).toEqual([
      "grpc.health.v1.Health",
      "grpc.reflection.v1.ServerReflection",
      "grpc.reflection.v1alpha.ServerReflection",
      "tessera.v1.TaskService",
    ]);
  });

  it.each([
    "tessera.v1.TaskService",
    "tessera.v1.TaskService.GetTask",
    "tessera.v1.Task",
    "tessera.v1.Task.task_id",
    "tessera.v1.SubmitTaskRequest.input",
    "tessera.v1.TaskStatus",
    "tessera.v1.TASK_STATUS_QUEUED",
  ])("gives the file that declares %s, with all it imports", async (symbol) => {
    const [answer] = await ask(service, [{ case: "fileContainingSymbol", value: symbol }]);
    const file = files(answer);
    expect(file[0]?.name).toBe("tessera/v1/task.proto");
    const registry = createFileRegistry({
      $typeName: FileDescriptorSetSchema.typeName,
      file: file
        .toReversed()
        .sort((a, b) => Number(b.dependency.length === 0) - Number(a.dependency.length === 0)),
    } as never);
    expect(registry.getService("tessera.v1.TaskService")).toBeDefined();
  });

  it("sends a dependency once per stream, and the file asked for always", async () => {
    const [first, second, third] = await ask(service, [
      { case: "fileContainingSymbol", value: "tessera.v1.Task" },
      { case: "fileByFilename", value: "tessera/v1/task.proto" },
      { case: "fileByFilename", value: "google/protobuf/duration.proto" },
    ]);
    expect(files(first).length).toBeGreaterThan(5);
    expect(files(second).map((file) => file.name)).toEqual(["tessera/v1/task.proto"]);
    expect(files(third).map((file) => file.name)).toEqual(["google/protobuf/duration.proto"]);
  });

  it("knows extensions", async () => {
    const containingType = "google.protobuf.MethodOptions";
    const [numbers, file, none] = await ask(service, [
      { case: "allExtensionNumbersOfType", value: containingType },
      { case: "fileContainingExtension", value: { containingType, extensionNumber: 72295728 } },
      { case: "allExtensionNumbersOfType", value: "tessera.v1.Task" },
    ]);
    expect(numbers?.case === "allExtensionNumbersResponse" && numbers.value).toMatchObject({
      baseTypeName: containingType,
      extensionNumber: [72295728, 50601],
    });
    expect(files(file)[0]?.name).toBe("google/api/annotations.proto");
    expect(none?.case === "allExtensionNumbersResponse" && none.value.extensionNumber).toEqual([]);
  });

  it.each([
    ["fileByFilename", "no.proto", 5],
    ["fileContainingSymbol", "no.Symbol", 5],
    ["fileContainingExtension", { containingType: "tessera.v1.Task", extensionNumber: 1 }, 5],
    ["allExtensionNumbersOfType", "no.Message", 5],
  ])("answers %s %j with an error and goes on", async (name, value, code) => {
    const [error, next] = await ask(service, [
      { case: name, value },
      { case: "listServices", value: "" },
    ]);
    expect(error?.case === "errorResponse" && error.value.errorCode).toBe(code);
    expect(next?.case).toBe("listServicesResponse");
  });

  it("answers a request for nothing with an error", async () => {
    const [error] = await ask(service, [undefined as never]);
    expect(error?.case === "errorResponse" && error.value.errorCode).toBe(3);
  });
});

it.each(["grpc", "grpcweb"])("buf curl finds its way by reflection over %s", async (protocol) => {
  await using server = await startServer(
    { getTask: ({ taskId }) => ({ taskId, status: 1 }) },
    { http2: true },
  );
  const { stdout } = await promisify(execFile)("node_modules/.bin/buf", [
    "curl",
    "--http2-prior-knowledge",
    ...["--protocol", protocol],
    ...["--data", '{"taskId":"a"}'],
    `${server.origin}/tessera.v1.TaskService/GetTask`,
  ]);
  expect(JSON.parse(stdout)).toEqual({ taskId: "a", status: "TASK_STATUS_QUEUED" });
});
