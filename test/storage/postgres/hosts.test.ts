import { describe, expect, it, test } from "vitest";
import { PostgresStorage } from "../../../src/storage/postgres/storage.ts";
import { addressOf, parseAddress } from "../../../src/storage/postgres-address.ts";
import { freePort } from "../../free-port.ts";
import { type PostgresServer, startPostgres } from "../../postgres.ts";
import { key, newTask } from "../fixtures.ts";

describe("an address with several hosts", () => {
  it("is one address for each, in order, each with its own port", () => {
    const { urls, mustWrite } = parseAddress(
      "postgres://me:p%40ss@one:5432,two.example,[::1]:6000/db?target_session_attrs=read-write",
    );
    const rest = "/db?target_session_attrs=read-write";
    expect(urls).toEqual([
      `postgres://me:p%40ss@one:5432${rest}`,
      `postgres://me:p%40ss@two.example${rest}`,
      `postgres://me:p%40ss@[::1]:6000${rest}`,
    ]);
    expect(mustWrite).toBe(true);
    expect(parseAddress("postgres://one/db").mustWrite).toBe(false);
    expect(parseAddress("postgres://one/db?target_session_attrs=primary").mustWrite).toBe(true);
  });

  it("is shown without its password", () => {
    expect(addressOf("postgres://me:secret@one:1,two:2/db")).toBe("postgres://me@one:1,two:2/db");
    expect(addressOf("postgres://me:secret@one:x/db")).toBe("postgres://…");
  });

  it.each([
    "postgres://me:secret@one:1,two:x/db",
    "postgres://me:secret@one:1,/db",
    "postgres://me:secret@,two/db",
    "postgres://me:secret@one,two/db?target_session_attrs=standby",
    "postgres://me:secret@one/db?target_session_attrs=any",
  ])("is refused without being quoted: %s", (address) => {
    expect(() => parseAddress(address)).toThrow(/^it(?:s target_session_attrs| is not a valid)/);
    expect(() => parseAddress(address)).not.toThrow(/secret/);
  });
});

/** The address of these ports of 127.0.0.1. */
function addressWith(server: PostgresServer, ...ports: readonly number[]): string {
  const hosts = ports.map((port) => `127.0.0.1:${port}`).join(",");
  return `${server.url.replace(`127.0.0.1:${server.port}`, hosts)}?target_session_attrs=read-write`;
}

test("hosts that are away or take no writes are passed over, at the start and later", async () => {
  await using server = await startPostgres();
  await using standby = await startPostgres({ settings: { default_transaction_read_only: "on" } });
  const url = addressWith(server, await freePort(), standby.port, server.port);
  await using storage = new PostgresStorage(url);
  await storage.start();
  await storage.submitTasks({ tasks: [newTask("a")] });
  await server.stop();
  await expect(storage.getTask(key("a"))).rejects.toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
  await server.start();
  expect(await storage.getTask(key("a"))).toMatchObject({ status: "queued" });
});

test("without a host that takes writes, the start says so", async () => {
  await using standby = await startPostgres({ settings: { default_transaction_read_only: "on" } });
  await using storage = new PostgresStorage(addressWith(standby, standby.port));
  await expect(storage.start()).rejects.toThrow(/it is a standby.*name all hosts/);
});
