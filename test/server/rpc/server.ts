/** A server of TaskService, reflection and health, over HTTP/1.1 or HTTP/2 cleartext. */
import type { AddressInfo } from "node:net";
import type { Interceptor, ServiceImpl } from "@connectrpc/connect";
import { type FastifyInstance, fastify } from "fastify";
import { Health } from "../../../gen/grpc/health/v1/health_pb.js";
import { TaskService } from "../../../gen/tessera/v1/task_pb.js";
import { leaveBodies } from "../../../src/server/http/body.ts";
import { restPlugin } from "../../../src/server/rest/plugin.ts";
import type { ReportProblem } from "../../../src/server/rpc/engine/errors.ts";
import { createInvoker, register } from "../../../src/server/rpc/engine/invoker.ts";
import { rpcPlugin } from "../../../src/server/rpc/engine/plugin.ts";
import { answerUnknown } from "../../../src/server/rpc/engine/unimplemented.ts";
import { createHealthService, type HealthSource } from "../../../src/server/rpc/health.ts";
import { createValidateInterceptor } from "../../../src/server/rpc/interceptors/validate.ts";
import { createReflectionServices } from "../../../src/server/rpc/reflection.ts";

/** A health that a test changes by hand. */
export class FakeHealth implements HealthSource {
  readonly statuses = new Map<string, "SERVING" | "NOT_SERVING">([
    ["", "SERVING"],
    [TaskService.typeName, "SERVING"],
  ]);
  readonly #listeners = new Set<() => void>();

  status(service: string) {
    return this.statuses.get(service);
  }

  onChange(listener: () => void) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  set(service: string, status: "SERVING" | "NOT_SERVING") {
    this.statuses.set(service, status);
    for (const listener of this.#listeners) {
      listener();
    }
  }
}

export interface ServerOptions {
  readonly http2?: boolean;
  readonly interceptors?: readonly Interceptor[];
  readonly health?: HealthSource;
  readonly readMaxBytes?: number;
  /** Called with each error that leaves an RPC. */
  readonly report?: ReportProblem;
}

export async function startServer(
  implementation: Partial<ServiceImpl<typeof TaskService>>,
  options: ServerOptions = {},
) {
  const interceptors = [...(options.interceptors ?? []), createValidateInterceptor()];
  const services = [
    register(TaskService, implementation),
    createHealthService(options.health ?? new FakeHealth(), [TaskService.typeName]),
    ...createReflectionServices([TaskService, Health]),
  ];
  const invoker = createInvoker({ services, interceptors });
  const app = (options.http2 === true
    ? fastify({ http2: true, http2SessionTimeout: 0 })
    : fastify()) as unknown as FastifyInstance;
  const { readMaxBytes = 100_000 } = options;
  leaveBodies(app);
  answerUnknown(app, (_req, reply) => reply.code(404).send());
  const { report } = options;
  await app.register(rpcPlugin, {
    services,
    interceptors,
    invoker,
    readMaxBytes,
    ...(report && { report }),
  });
  await app.register(restPlugin, { services: [TaskService], invoke: invoker });
  app.post("/:endpoint/submit", async () => ({ submitted: true }));
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.server.address() as AddressInfo;
  return {
    port,
    origin: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      if (options.http2 !== true) {
        app.server.closeAllConnections();
      }
      await app.close();
    },
  };
}
