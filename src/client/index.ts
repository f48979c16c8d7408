/**
 * The TypeScript client: the services of `tessera.v1` over Connect, typed by
 * what `buf generate` wrote.
 */
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { EndpointService } from "../../gen/tessera/v1/endpoint_pb.js";
import { TaskService } from "../../gen/tessera/v1/task_pb.js";

export * from "../../gen/tessera/v1/endpoint_pb.js";
export * from "../../gen/tessera/v1/error_pb.js";
export * from "../../gen/tessera/v1/task_pb.js";

export interface TesseraClientOptions {
  /** The server, such as `http://localhost:3000`. */
  readonly url: string;
  /** Sent as bearer token with every call. */
  readonly token?: string;
  /** After this long a call fails with `deadline_exceeded`. Default: no limit. */
  readonly timeoutMs?: number;
}

export interface TesseraClient {
  readonly tasks: Client<typeof TaskService>;
  readonly endpoints: Client<typeof EndpointService>;
}

/** Connects to a server. Errors of calls are `ConnectError`s with a reason of the catalogue. */
export function createTesseraClient(options: TesseraClientOptions): TesseraClient {
  const { url, token, timeoutMs } = options;
  const transport = createConnectTransport({
    baseUrl: url,
    httpVersion: "1.1",
    interceptors: token === undefined ? [] : [bearer(token)],
    ...(timeoutMs !== undefined && { defaultTimeoutMs: timeoutMs }),
  });
  return {
    tasks: createClient(TaskService, transport),
    endpoints: createClient(EndpointService, transport),
  };
}

function bearer(token: string): Interceptor {
  return (next) => (req) => {
    req.header.set("authorization", `Bearer ${token}`);
    return next(req);
  };
}
