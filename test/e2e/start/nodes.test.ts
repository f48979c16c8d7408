import { cpSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { freePort } from "../../free-port.ts";
import { skipped } from "../../pool/sandbox/available.ts";
import { ask } from "../../storage/postgres/databases.ts";
import { SilentProxy } from "../../storage/postgres/proxy.ts";
import { newPostgres } from "./databases.ts";
import { bearer, Folder, type Platform, start } from "./platform.ts";

/** Revocations measured. */
const ROUNDS = 10;

describe("two nodes on one Postgres", () => {
  let folders: Folder[];
  let nodes: Platform[];
  let url: string;

  const startNode = async (
    database = url,
    env: Readonly<Record<string, string>> = {},
  ): Promise<Platform> => {
    const folder = new Folder();
    const [first] = folders;
    if (first !== undefined) {
      cpSync(first.data, folder.data, { recursive: true });
    }
    folders.push(folder);
    const node = await start(folder, { database, env });
    nodes.push(node);
    return node;
  };

  beforeEach(async () => {
    folders = [];
    nodes = [];
    url = await newPostgres();
  });
  afterEach(async () => {
    await Promise.all(nodes.map((node) => node[Symbol.asyncDispose]()));
    for (const folder of folders) {
      folder[Symbol.dispose]();
    }
  });

  /** How long one node goes on accepting tokens that the other has deleted, in milliseconds. */
  const revocationsMs = async (one: Platform, other: Platform): Promise<number[]> => {
    const cookie = await other.setUp();
    const measured: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const { id, value } = await one.createToken(cookie);
      // 503 while its connection to the database is cut.
      await expect.poll(() => other.whoIs(bearer(value))).toBe(200);
      const res = await fetch(`${one.url}/api/v1/tokens/${id}`, {
        method: "DELETE",
        headers: cookie,
      });
      expect(res.status).toBe(200);
      const deletedAt = performance.now();
      expect(await one.whoIs(bearer(value))).toBe(401);
      while ((await other.whoIs(bearer(value))) !== 401) {
        expect(performance.now() - deletedAt).toBeLessThan(5_000);
      }
      measured.push(performance.now() - deletedAt);
    }
    return measured.sort((a, b) => a - b);
  };

  it("refuse a token on one within a second of its deletion on the other", async () => {
    const one = await startNode();
    const other = await startNode();
    const measured = await revocationsMs(one, other);
    expect(measured[ROUNDS / 2]).toBeLessThan(1_000);
    expect(measured.at(-1)).toBeLessThan(5_000);
  });

  it("do so also while notifications do not come through", async () => {
    const one = await startNode();
    const other = await startNode();
    // Whoever listens is cut off, and by the time it listens again, once more.
    const cut = setInterval(() => {
      void ask(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query ~ '^(LISTEN|SELECT 1$|SELECT pg_notify)' AND pid <> pg_backend_pid()",
      ).catch(() => undefined);
    }, 100);
    try {
      const measured = await revocationsMs(one, other);
      expect(measured[ROUNDS / 2]).toBeLessThan(1_000);
      expect(measured.at(-1)).toBeLessThan(5_000);
    } finally {
      clearInterval(cut);
    }
  });

  it("rely on nothing that they remember when the database does not answer", async () => {
    await using proxy = new SilentProxy(new URL(url));
    const one = await startNode();
    const other = await startNode(await proxy.listen(url));
    const cookie = await other.setUp();
    const { value } = await one.createToken(cookie);
    expect(await other.whoIs(bearer(value))).toBe(200);
    proxy.silence();
    const silentAt = performance.now();
    while ((await other.whoIs(bearer(value))) === 200) {
      expect(performance.now() - silentAt).toBeLessThan(5_000);
    }
    expect(await other.whoIs(bearer(value))).toBe(503);
    expect(await one.whoIs(bearer(value))).toBe(200);
    const ready = async (node: Platform) => (await node.call("/readyz")).status;
    // At the first call that the database refused, not at the next heartbeat.
    expect(await ready(other)).toBe(503);
    expect(await ready(one)).toBe(200);
  });

  it.skipIf(skipped)(
    `listen on one port, on which the other answers once one has ended${skipped}`,
    async () => {
      const port = await freePort();
      const env = { TESSERA_SHARED_PORT: String(port) };
      const answers = async (): Promise<number[]> => {
        const asked = Array.from({ length: 20 }, () =>
          fetch(`http://127.0.0.1:${port}/readyz`, { headers: { connection: "close" } }),
        );
        return (await Promise.all(asked)).map(({ status }) => status);
      };
      const one = await startNode(url, env);
      expect(one.started.url).toBe(`http://localhost:${port}`);
      expect(new Set(await answers())).toEqual(new Set([200]));
      await startNode(url, env);
      expect(new Set(await answers())).toEqual(new Set([200]));
      await one.started.stop();
      expect(new Set(await answers())).toEqual(new Set([200]));
    },
  );

  it("need the same keys", async () => {
    const one = await startNode();
    await one.setUp();
    using stranger = new Folder();
    await expect(start(stranger, { database: url })).rejects.toThrow("copy it from another node");
  });
});
