import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Health } from "../../../gen/grpc/health/v1/health_pb.js";
import { ServerReflection } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { EndpointService } from "../../../gen/tessera/v1/endpoint_pb.js";
import { TaskService } from "../../../gen/tessera/v1/task_pb.js";
import { type Served, serve } from "./served.ts";

const TOKEN = "a-token-for-tests";

let served: Served;
beforeAll(async () => {
  served = await serve("calls", { token: TOKEN });
});
afterAll(() => served.stop());

const METHODS: readonly DescMethod[] = [...TaskService.methods, ...EndpointService.methods];

const CALLERS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  nobody: {},
  "a wrong token": { authorization: `Bearer ${TOKEN}x` },
  "a platform's token": { authorization: "Bearer tsrp_0000000000000000000000000000001Fnuhi" },
  "a session": { cookie: `tessera_session=${"0".repeat(43)}` },
};

describe("a server of one service with a token", () => {
  it.each(METHODS.map((method) => ({ method, title: method.toString() })))(
    "asks for it before anything else: $title",
    async ({ method }) => {
      const path = `/${method.parent.typeName}/${method.name}`;
      const isStream = method.methodKind !== "unary";
      const call = async (headers: Readonly<Record<string, string>>) => {
        const body = isStream ? Buffer.from([0, 0, 0, 0, 2, 0x7b, 0x7d]) : Buffer.from("{}");
        const type = isStream ? "application/connect+json" : "application/json";
        const init = { method: "POST", body, headers: { ...headers, "content-type": type } };
        const { text } = await served.fetch(path, init);
        return /"code":"(\w+)"/.exec(text)?.[1];
      };
      for (const [caller, headers] of Object.entries(CALLERS)) {
        expect(await call(headers), caller).toBe("unauthenticated");
      }
      expect(await call({ authorization: `Bearer ${TOKEN}` })).not.toBe("unauthenticated");
    },
  );

  it("asks for it before it shows its descriptors, and tells its health to everyone", async () => {
    const transport = createGrpcTransport({ baseUrl: served.origin });
    const { check } = createClient(Health, transport);
    expect((await check({})).status).toBe(1);
    const { serverReflectionInfo } = createClient(ServerReflection, transport);
    const ask = async (headers: Readonly<Record<string, string>>) => {
      async function* questions() {
        yield { messageRequest: { case: "listServices" as const, value: "" } };
      }
      for await (const { messageResponse } of serverReflectionInfo(questions(), { headers })) {
        return messageResponse.case;
      }
      return undefined;
    };
    const err = ConnectError.from(await ask({}).catch((thrown: unknown) => thrown));
    expect(err.code).toBe(Code.Unauthenticated);
    expect(await ask({ authorization: `Bearer ${TOKEN}` })).toBe("listServicesResponse");
  });
});

it("a server of one service tells callers who they are to it", async () => {
  const headers = { authorization: `Bearer ${TOKEN}` };
  expect((await served.get("/api/v1/me", headers)).json).toMatchObject({ kind: "shared_token" });
  expect((await served.get("/api/v1/me")).status).toBe(401);
  await using open = await serve("calls");
  expect((await open.get("/api/v1/me")).json).toMatchObject({ kind: "anonymous" });
  const signIn = await served.post("/api/v1/auth:signIn", { email: "ada@example.com" });
  expect(signIn.status).toBe(501);
});
