/** The service of the clients' tests, served in this process. */
import { fileURLToPath } from "node:url";
import { serveService } from "../../../src/app/serve.ts";
import { readServeConfig } from "../../../src/config/serve.ts";
import type service from "../clients/service.ts";

/** The type of the service, for typed clients. */
export type Clients = typeof service;

export interface ServedClients extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
}

export async function serveClients({
  token,
  allowedOrigins = [],
}: {
  readonly token?: string;
  readonly allowedOrigins?: readonly string[];
} = {}): Promise<ServedClients> {
  const path = fileURLToPath(new URL("../clients/service.ts", import.meta.url));
  const { config } = readServeConfig(path, { port: "0", database: ":memory:" }, {});
  const quick = { allowedOrigins, workers: 1, logLevel: "silent", graceMs: 300, drainMs: 300 };
  const served = await serveService({ ...config, ...quick }, { token });
  return {
    port: served.port,
    url: `http://127.0.0.1:${served.port}`,
    [Symbol.asyncDispose]: () => served.stop(),
  };
}
