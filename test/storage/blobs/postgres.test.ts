import { PostgresBlobStore } from "../../../src/storage/blobs/postgres.ts";
import { ask, databaseUrl, newSchema, openPostgres } from "../postgres/databases.ts";
import { SilentProxy } from "../postgres/proxy.ts";
import { blobsContract } from "./contract.ts";

blobsContract("rows of Postgres", async () => {
  const schema = newSchema();
  const storage = await openPostgres({ schema });
  const proxy = new SilentProxy(new URL(await databaseUrl()));
  const url = await proxy.listen(await databaseUrl());
  const store = new PostgresBlobStore(url, { schema, timeoutMs: 1_000 });
  await store.start();
  return {
    store,
    async count() {
      const [row] = await ask(await databaseUrl(), `SELECT count(*) FROM ${schema}.blob_chunks`);
      return Number(row?.count);
    },
    async breakDown() {
      proxy.silence();
      return async () => proxy.speak();
    },
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]();
      await storage[Symbol.asyncDispose]();
      await proxy[Symbol.asyncDispose]();
      await ask(await databaseUrl(), `DROP SCHEMA ${schema} CASCADE`);
    },
  };
});
