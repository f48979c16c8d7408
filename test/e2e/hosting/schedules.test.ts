/** Schedules on three nodes that share a Postgres, of which two are killed while they fire. */
import pg from "pg";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ScheduleCatchUp, ScheduleOverlap } from "../../../src/client/index.ts";
import { Program } from "../cli/program.ts";
import { newPostgres } from "../start/databases.ts";
import { artifact, until, World } from "./world.ts";

const MISSED = 300;
const MINUTE_MS = 60_000;

let world: World;
let database: string;
const programs: Program[] = [];

beforeEach(async () => {
  database = await newPostgres();
  world = await World.start({ database });
});
afterEach(async () => {
  for (const program of programs.splice(0)) {
    await program[Symbol.asyncDispose]();
  }
  await world[Symbol.asyncDispose]();
});

/** A node in a process of its own. */
async function spawnNode(): Promise<Program> {
  const program = new Program(["start", "--port", "0", "--data", world.folder.data], {
    cwd: world.folder.path,
    env: { DATABASE_URL: database },
  });
  programs.push(program);
  await program.says("stdout", / runs on http:\/\/localhost:(\d+)\n/);
  return program;
}

async function ask<Row extends object>(text: string, ...values: unknown[]): Promise<Row[]> {
  const client = new pg.Client({ connectionString: database });
  await client.connect();
  try {
    return (await client.query<Row>(text, values)).rows;
  } finally {
    await client.end();
  }
}

it("has one task for each time when nodes are killed while they fire", async () => {
  await world.deployed("echo", await artifact());
  const [first, second] = [await spawnNode(), await spawnNode()];
  await world.until("echo", ({ nodes }) => nodes === 3);
  const { schedules } = await world.callerClient();
  await schedules.createSchedule({
    deployment: "echo",
    schedule: {
      ...{ name: "minutely", endpoint: "work", cron: "* * * * *", arguments: { text: "x" } },
      ...{ overlap: ScheduleOverlap.QUEUE, catchUp: ScheduleCatchUp.ALL },
    },
  });
  // As if nobody had been there for hours.
  const [row] = await ask<{ next: string }>(
    `UPDATE tessera.schedules SET next_at_ms = next_at_ms - $1 RETURNING next_at_ms AS next`,
    MISSED * MINUTE_MS,
  );
  const fromMs = Number(row?.next);
  const keys = () => ask<{ key: string }>("SELECT key FROM tessera.idempotency_keys ORDER BY key");
  const reached = (count: number) => until(keys, ({ length }) => length >= count);
  await reached(20);
  await first.stop("SIGKILL");
  await reached(100);
  await second.stop("SIGKILL");
  await reached(MISSED);
  const found = (await keys()).map(({ key }) => key);
  const expected = Array.from(
    { length: found.length },
    (_, n) => `schedule/minutely/${new Date(fromMs + n * MINUTE_MS).toISOString()}`,
  );
  expect(found).toEqual(expected);
  // None is stored twice, and each is done.
  const count = `SELECT count(*)::int AS tasks, count(DISTINCT idempotency_key)::int AS keys FROM tessera.tasks`;
  await until(
    () => ask<{ tasks: number; keys: number }>(count),
    ([counted]) => counted?.tasks === counted?.keys && (counted?.tasks ?? 0) >= MISSED,
  );
  const [last] = (await schedules.listSchedules({ deployment: "echo" })).schedules;
  expect(last?.nextTimes).toHaveLength(5);
}, 120_000);
