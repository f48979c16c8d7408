import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, test } from "vitest";
import { type PostgresOptions, PostgresStorage } from "../../../src/storage/postgres/storage.ts";
import { key, newTask } from "../fixtures.ts";
import { ask, databaseUrl, newSchema, openPostgres } from "./databases.ts";

/** The message that a start is refused with, or "opened". */
async function refusal(url: string, options: PostgresOptions = {}): Promise<string> {
  await using storage = new PostgresStorage(url, { schema: newSchema(), ...options });
  try {
    await storage.start();
    return "opened";
  } catch (err) {
    return err instanceof Error ? err.message : String(err);
  }
}

async function changedUrl(change: (url: URL) => void): Promise<string> {
  const url = new URL(await databaseUrl());
  change(url);
  return url.href;
}

describe("opening a Postgres database", () => {
  test("everything that was acknowledged is there after reopening", async () => {
    const schema = newSchema();
    {
      await using storage = await openPostgres({ schema });
      expect(storage.capabilities).toEqual({ shared: true, durable: true });
      await storage.submitTasks({ tasks: [newTask("a")] });
    }
    await using storage = await openPostgres({ schema });
    expect(await storage.getTask(key("a"))).toMatchObject({ status: "queued" });
  });

  test("many at once bring an empty one up to date, once", async () => {
    const schema = newSchema();
    const storages = await Promise.all(
      Array.from({ length: 6 }, () => openPostgres({ schema, connections: 2 })),
    );
    await storages[0]?.submitTasks({ tasks: [newTask("a")] });
    expect(await storages[5]?.getTask(key("a"))).toMatchObject({ status: "queued" });
    await Promise.all(storages.map((storage) => storage[Symbol.asyncDispose]()));
    const versions = await ask(await databaseUrl(), `SELECT version FROM ${schema}.schema_version`);
    expect(versions).toEqual([{ version: expect.any(Number) }]);
  });

  test("refuses a database of a newer version, and leaves it as it is", async () => {
    const schema = newSchema();
    const url = await databaseUrl();
    const setVersion = (version: number) =>
      ask(url, `UPDATE ${schema}.schema_version SET version = ${version}`);
    expect(await refusal(url, { schema })).toBe("opened");
    const [current] = await ask(url, `SELECT version FROM ${schema}.schema_version`);
    await setVersion(99);
    expect(await refusal(url, { schema })).toMatch(
      /^cannot open the database postgres:.*: its schema has version 99, .*run a newer version of tessera, or use another database$/,
    );
    await setVersion(Number(current?.version));
    expect(await refusal(url, { schema })).toBe("opened");
  });

  test("says that the password is wrong, without telling it", async () => {
    const url = await changedUrl((url) => {
      url.password = "wrong-password";
    });
    const message = await refusal(url);
    expect(message).toMatch(
      /^cannot open the database postgres:\/\/tessera@127\.0\.0\.1:\d+\/\w+: password authentication failed for user "tessera"; check the user and the password in the address$/,
    );
  });

  test("says that the database does not exist", async () => {
    const url = await changedUrl((url) => {
      url.pathname = "/nowhere";
    });
    expect(await refusal(url)).toMatch(
      /: database "nowhere" does not exist; create it, or name another in the address$/,
    );
  });

  test("says that nothing listens at the address", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, "close");
    expect(await refusal(`postgres://tessera@127.0.0.1:${port}/db`)).toBe(
      `cannot open the database postgres://tessera@127.0.0.1:${port}/db: ` +
        "nothing listens there; check the host and the port, and that Postgres runs",
    );
  });

  test("says that the host is not known", async () => {
    expect(await refusal("postgres://tessera@nowhere.invalid/db")).toMatch(
      /: the host (is not known|cannot be looked up); check the address/,
    );
  });

  test("says that a server does not answer", async () => {
    const silent = createServer(() => undefined).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    const url = `postgres://tessera@127.0.0.1:${port}/db`;
    expect(await refusal(url, { timeoutMs: 200 })).toMatch(
      /: it does not answer; check the host and the port, and that no firewall is between$/,
    );
    silent.close();
  });

  test("says that the user may not create what it needs", async () => {
    const url = await databaseUrl();
    const user = `plain_${process.pid}`;
    await ask(url, `CREATE USER ${user} PASSWORD 'plain'`);
    const plain = await changedUrl((url) => {
      url.username = user;
      url.password = "plain";
    });
    expect(await refusal(plain)).toMatch(
      /permission denied for database .*; grant this user CREATE on the database, or have its owner start tessera once$/,
    );
  });

  test("says how an address is written", async () => {
    expect(await refusal("postgres://[half")).toMatch(
      /^cannot open the database postgres:\/\/…: it is not a valid address; write postgres:/,
    );
    expect(() => new PostgresStorage("postgres://host/db", { schema: "no; DROP" })).toThrow(
      /cannot be the name of a schema/,
    );
  });

  test("calls are refused before the start and after the end, and ending twice is once", async () => {
    const refused = { reason: "STORAGE_UNAVAILABLE", retryAfterMs: 1_000 };
    const storage = new PostgresStorage(await databaseUrl(), { schema: newSchema() });
    await expect(storage.getTask(key("a"))).rejects.toMatchObject(refused);
    await storage.start();
    const first = storage[Symbol.asyncDispose]();
    await storage[Symbol.asyncDispose]();
    await first;
    await expect(storage.getTask(key("a"))).rejects.toMatchObject(refused);
    await expect(storage.submitTasks({ tasks: [newTask("a")] })).rejects.toMatchObject(refused);
  });
});
