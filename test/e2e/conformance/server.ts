/**
 * The server that the suite calls: its service on the engine, the listener and the bodies of
 * the platform. It reads what is asked of it from the standard input and tells its port on the
 * standard output, each as a message after its length.
 *
 * The platform adds details to its errors (the reason, the request's id). The suite refuses an
 * error with a detail that it does not know, so they are left out here.
 */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import Fastify from "fastify";
import { BodyBudget, leaveBodies, shareBudget } from "../../../src/server/http/body.ts";
import { refuseOtherMethods } from "../../../src/server/http/paths.ts";
import { createListener, type Listener } from "../../../src/server/listener.ts";
import { requestValues } from "../../../src/server/rpc/engine/caller.ts";
import { createInvoker, register } from "../../../src/server/rpc/engine/invoker.ts";
import { rpcPlugin } from "../../../src/server/rpc/engine/plugin.ts";
import { answerUnknown } from "../../../src/server/rpc/engine/unimplemented.ts";
import { createValidateInterceptor } from "../../../src/server/rpc/interceptors/validate.ts";
import {
  ServerCompatRequestSchema,
  ServerCompatResponseSchema,
} from "./gen/connectrpc/conformance/v1/server_compat_pb.js";
import { ConformanceService } from "./gen/connectrpc/conformance/v1/service_pb.js";
import { conformance } from "./service.ts";

/** Bodies under way together; more than the suite sends at a time. */
const BODY_BUDGET_BYTES = 64 * 1024 * 1024;

/** A server whose suite was killed ends by itself. */
const LONGEST_RUN_MS = 600_000;

const OWN_DETAIL = /^google\.rpc\./;

/** Starts the server on a free port of the loopback interface. */
async function start(receiveLimitBytes: number): Promise<number> {
  let listener: Listener | undefined;
  const app = Fastify({
    // Without an id, errors have no detail that names it.
    genReqId: () => "",
    serverFactory: (handler) => {
      listener = createListener(handler);
      return listener.server as unknown as ReturnType<typeof import("node:http").createServer>;
    },
  });
  const refuseMethod = refuseOtherMethods(app, () => undefined);
  answerUnknown(app, (req, reply) => refuseMethod(req, reply) ?? reply.code(404).send());
  leaveBodies(app);
  shareBudget(app, new BodyBudget(BODY_BUDGET_BYTES));
  app.addHook("onSend", async (_req, reply, payload) =>
    reply.statusCode >= 400 && Buffer.isBuffer(payload) ? withoutOwnDetails(payload) : payload,
  );
  const options = receiveLimitBytes === 0 ? {} : { maxMessageBytes: receiveLimitBytes };
  const services = [register(ConformanceService, conformance, options)];
  const interceptors = [createValidateInterceptor()];
  await app.register(rpcPlugin, {
    services,
    interceptors,
    invoker: createInvoker({ services, interceptors }),
    contextValues: (req) => requestValues(req, "connect"),
    report: (found) => {
      found.details = found.details.filter(
        (detail) => !OWN_DETAIL.test("desc" in detail ? detail.desc.typeName : detail.type),
      );
    },
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  return (app.server.address() as AddressInfo).port;
}

function withoutOwnDetails(payload: Buffer): Buffer {
  const error = JSON.parse(payload.toString()) as { readonly details?: { type: string }[] };
  const details = error.details?.filter(({ type }) => !OWN_DETAIL.test(type));
  return Buffer.from(JSON.stringify({ ...error, details }));
}

/** The message that the suite sends; its input stays open. */
async function asked(): Promise<Buffer> {
  let input = Buffer.alloc(0);
  for await (const chunk of process.stdin) {
    input = Buffer.concat([input, chunk]);
    if (input.length >= 4 && input.length >= 4 + input.readUInt32BE()) {
      break;
    }
  }
  return input.subarray(4);
}

const { messageReceiveLimit } = fromBinary(ServerCompatRequestSchema, await asked());
const port = await start(messageReceiveLimit);
const answer = toBinary(
  ServerCompatResponseSchema,
  create(ServerCompatResponseSchema, { host: "127.0.0.1", port }),
);
const length = Buffer.alloc(4);
length.writeUInt32BE(answer.length);
process.stdout.write(Buffer.concat([length, answer]));
setTimeout(() => process.exit(1), LONGEST_RUN_MS).unref();
await once(process, "SIGTERM");
process.exit();
