import { expect, test } from "vitest";
import { startWhenThere } from "../../src/app/node.ts";
import { PostgresStorage } from "../../src/storage/postgres/storage.ts";
import { freePort } from "../free-port.ts";
import { startPostgres } from "../postgres.ts";

/** A clock that only pauses move, and what is said meanwhile. */
function waiting(onPause: (nowMs: number) => Promise<void> = async () => {}) {
  let nowMs = 0;
  const said: { readonly atMs: number; readonly message: string }[] = [];
  const say = (_fields: object, message: string): void => void said.push({ atMs: nowMs, message });
  const options = {
    log: { debug: say, info: say, warn: say, error: say },
    waitMs: 60_000,
    monotonicMs: () => nowMs,
    pause: async (ms: number): Promise<void> => {
      nowMs += ms;
      await onPause(nowMs);
    },
  };
  return { options, said, now: () => nowMs };
}

test("a start waits a minute for a database that is away, and says so every five seconds", async () => {
  const port = await freePort();
  await using storage = new PostgresStorage(`postgres://me:hidden@127.0.0.1:${port}/db`);
  const { options, said, now } = waiting();
  await expect(startWhenThere(storage, options)).rejects.toThrow(/nothing listens there/);
  expect(now()).toBe(60_000);
  expect(said.map(({ atMs }) => atMs)).toEqual(
    Array.from({ length: 12 }, (_, number) => number * 5_000),
  );
  expect(said[0]?.message).toMatch(
    /^cannot open the database .*: nothing listens there; .*; trying again for 60 s$/,
  );
  expect(JSON.stringify(said)).not.toContain("hidden");
});

test("a start goes on when the database is there", async () => {
  await using server = await startPostgres();
  await server.stop();
  await using storage = new PostgresStorage(server.url);
  const { options, said, now } = waiting(async (nowMs) => {
    if (nowMs === 1_000) {
      await server.start();
    }
  });
  await startWhenThere(storage, options);
  expect(now()).toBe(1_000);
  expect(said).toHaveLength(1);
});

test("a start does not wait where waiting cannot help", async () => {
  await using server = await startPostgres();
  const url = new URL(server.url);
  url.password = "wrong";
  await using storage = new PostgresStorage(url.href);
  const { options, said } = waiting();
  await expect(startWhenThere(storage, options)).rejects.toThrow(/check the user and the password/);
  expect(said).toEqual([]);
});
