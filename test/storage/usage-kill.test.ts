/**
 * What was used is what was measured, whenever the process is killed: the sums over tokens, over
 * deployments and over all are those of the tasks that are stored.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { dayOf } from "../../src/storage/days.ts";
import type { UsageKey } from "../../src/storage/hosting/usage.ts";
import type { Storage } from "../../src/storage/storage.ts";
import { listAll } from "./fixtures.ts";
import { HostingPlatform } from "./hosting/fixtures.ts";
import { ask, databaseUrl, newSchema, openPostgres } from "./postgres/databases.ts";
import { openSqlite, TestFolder } from "./sqlite/databases.ts";

const USE_FOREVER = fileURLToPath(new URL("./use-forever.ts", import.meta.url));

/** Lets a process use what there is, and kills it in the middle. */
async function useUntilKilled(place: readonly string[], atLeast: number): Promise<void> {
  const child = spawn(process.execPath, [USE_FOREVER, ...place], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let lines = 0;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    lines += text.split("\n").length - 1;
    if (lines > atLeast) {
      child.kill("SIGKILL");
    }
  });
  await once(child, "close");
  expect(lines).toBeGreaterThan(atLeast);
}

/** What the tasks themselves say, by deployment. */
async function measured(storage: Storage): Promise<Map<string, { tasks: number; runMs: number }>> {
  const found = new Map<string, { tasks: number; runMs: number }>();
  for (const name of ["one", "two"]) {
    const tasks = await listAll(storage, { deploymentId: `${name}-id`, limit: 500 });
    const runMs = tasks.flatMap(({ startedAtMs = 0, finishedAtMs = startedAtMs, returned }) => [
      finishedAtMs - startedAtMs,
      ...returned.map(({ startedAtMs: fromMs, endedAtMs }) => endedAtMs - fromMs),
    ]);
    found.set(name, { tasks: tasks.length, runMs: runMs.reduce((sum, ms) => sum + ms, 0) });
  }
  return found;
}

async function exercise(place: readonly string[], open: () => Promise<Storage>): Promise<void> {
  {
    await using storage = await open();
    const platform = await HostingPlatform.on(storage);
    for (const name of ["one", "two"]) {
      await platform.deploy([name], { name, deploymentId: `${name}-id` });
    }
  }
  for (const atLeast of [100, 200, 400]) {
    await useUntilKilled(place, atLeast);
    await using storage = await open();
    const organizationId = "organization-000001";
    const today = dayOf(Date.now());
    const sums = (...by: UsageKey[]) =>
      storage.hosting.readUsage({
        ...{ organizationId, fromDay: today - 1, toDay: today + 2, by, limit: 1_000 },
        ...{ deployments: [], tokenIds: [] },
      });
    const expected = await measured(storage);
    const all = { tasks: 0, runMs: 0 };
    for (const { deployment = "", tasks, runMs } of await sums("deployment")) {
      expect({ tasks, runMs }).toEqual(expected.get(deployment));
      all.tasks += tasks;
      all.runMs += runMs;
    }
    const byToken = await sums("token");
    expect(byToken.map(({ token }) => token?.id)).toEqual(["", "token-1", "token-2"]);
    expect(byToken.reduce((sum, { tasks }) => sum + tasks, 0)).toBe(all.tasks);
    expect(byToken.reduce((sum, { runMs }) => sum + runMs, 0)).toBe(all.runMs);
    expect(await sums()).toMatchObject([all]);
    const [total] = await sums();
    // Each attempt that ended reported as much.
    expect(total?.gpuMs).toBe((total?.units.tokens ?? 0) * 1.5);
  }
}

test("on SQLite nothing is lost or counted twice by a kill", async () => {
  using folder = new TestFolder();
  await exercise([folder.file()], () => openSqlite(folder.file()));
}, 120_000);

test("on Postgres nothing is lost or counted twice by a kill", async () => {
  const [url, schema] = [await databaseUrl(), newSchema()];
  await exercise([url, schema], () => openPostgres({ schema }));
  await ask(url, `DROP SCHEMA ${schema} CASCADE`);
}, 120_000);
