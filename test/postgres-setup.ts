/**
 * One Postgres for a whole test run: started when the first test asks for it,
 * so that runs without such tests do not wait for it, and removed at the end.
 * Test files run in processes of their own, so they ask over HTTP.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestProject } from "vitest/node";
import { type PostgresServer, startPostgres } from "./postgres.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** Answers the address of the run's Postgres. */
    postgresStarter: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  let started: Promise<PostgresServer> | undefined;
  const starter = createServer((_req, res) => {
    started ??= startPostgres();
    started.then(
      ({ url }) => res.end(url),
      (err: unknown) => res.writeHead(500).end(String(err)),
    );
  }).listen(0, "127.0.0.1");
  await once(starter, "listening");
  const { port } = starter.address() as AddressInfo;
  project.provide("postgresStarter", `http://127.0.0.1:${port}`);
  return async () => {
    starter.closeAllConnections();
    starter.close();
    // When it did not start, the tests have said so.
    await (await started?.catch(() => undefined))?.[Symbol.asyncDispose]();
  };
}
