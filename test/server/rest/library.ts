/** The test service: its descriptors, and a server that answers with what it was asked. */
import { execFileSync } from "node:child_process";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import {
  createFileRegistry,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  type JsonValue,
  type Message,
  toJson,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { fastify } from "fastify";
import { leaveBodies } from "../../../src/server/http/body.ts";
import { setDefaultHeaders } from "../../../src/server/http/default-headers.ts";
import { sendFrameworkError } from "../../../src/server/http/framework.ts";
import type { CallOrigin, Invoke } from "../../../src/server/http/invoke.ts";
import { restPlugin } from "../../../src/server/rest/plugin.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const config = JSON.stringify({
  version: "v2",
  modules: [{ path: "test/server/rest/proto" }, { path: "third_party/proto" }],
});
const built = execFileSync(
  "node_modules/.bin/buf",
  ["build", ".", "--config", config, "--as-file-descriptor-set", "-o", "-"],
  { cwd: root, maxBuffer: 16 * 1024 * 1024 },
);
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, built));

export const Library = registry.getService("library.v1.Library") as DescService;
export const RequestDesc = registry.getMessage("library.v1.Request") as DescMessage;

/** What a test's implementation gets. */
export interface Asked {
  readonly method: DescMethod;
  readonly message: Message;
  readonly json: JsonValue;
  readonly origin: CallOrigin;
}

export interface LibraryOptions {
  readonly services?: readonly DescService[];
  readonly unary?: (asked: Asked) => Message | Promise<Message>;
  readonly stream?: (asked: Asked) => AsyncIterable<Message>;
  readonly maxBodyBytes?: number;
  readonly keepAliveMs?: number;
  readonly firstAnswerMs?: number;
}

/** A server on a socket; unary calls answer their request unless the test says otherwise. */
export async function startLibrary(options: LibraryOptions = {}) {
  const app = fastify({ frameworkErrors: sendFrameworkError });
  const asked = (method: DescMethod, message: Message, origin: CallOrigin): Asked => ({
    method,
    message,
    origin,
    json: toJson(method.input, message, { useProtoFieldName: true }),
  });
  const invoke: Invoke = {
    async unary(method, message, origin) {
      const answer = await (options.unary?.(asked(method, message, origin)) ?? message);
      return { message: answer, header: new Headers({ "x-answered": "yes" }) };
    },
    stream(method, message, origin) {
      const answers = options.stream?.(asked(method, message, origin)) ?? none();
      return Object.assign(answers, { header: new Headers() });
    },
  };
  leaveBodies(app);
  setDefaultHeaders(app);
  await app.register(restPlugin, {
    services: options.services ?? [Library],
    invoke,
    ...(options.maxBodyBytes !== undefined && { maxBodyBytes: () => options.maxBodyBytes ?? 0 }),
    ...(options.firstAnswerMs === undefined ? {} : { firstAnswerMs: options.firstAnswerMs }),
    ...(options.keepAliveMs === undefined ? {} : { keepAliveMs: options.keepAliveMs }),
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.server.address() as AddressInfo;
  return {
    port,
    origin: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      app.server.closeAllConnections();
      await app.close();
    },
  };
}

async function* none(): AsyncGenerator<Message> {}
