import { setInterval as every } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Deployment } from "../../../src/deployments/deployment.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { violations } from "../../chaos/history.ts";
import { Ledger } from "../../chaos/ledger.ts";
import { Random } from "../../chaos/random.ts";
import { openSqlite, TestFolder } from "../../storage/sqlite/databases.ts";
import { Caller } from "./caller.ts";
import { Faults } from "./faults.ts";
import { historyOf, host, maintenanceOver, type Told } from "./queue.ts";

const SEED = Number(process.env.TESSERA_SEED ?? Date.now() % 1_000_000);
const CALLS = Number(process.env.TESSERA_CALLS ?? 800);
const AT_ONCE = 48;
const RATES = {
  timeout: 0.02,
  executed: 0.04,
  executed_late: 0.02,
  busy: 0.02,
  disconnected: 0.002,
  disk_full: 0.01,
};

/** Callers, at most so many at a time, while workers are killed. */
async function callers(
  hosted: Deployment,
  random: Random,
  { told, ledger }: { told: Told; ledger: Ledger },
): Promise<void> {
  let number = 0;
  const line = async (): Promise<void> => {
    while (number < CALLS) {
      const options = { hosted, random, told, ledgerUrl: ledger.url };
      await new Caller(number++, options).run();
    }
  };
  const over = new AbortController();
  const killer = killWorkers(ledger, random, over.signal);
  await Promise.all(Array.from({ length: AT_ONCE }, line));
  over.abort();
  await killer;
}

async function killWorkers(ledger: Ledger, random: Random, signal: AbortSignal): Promise<void> {
  try {
    for await (const _ of every(1_500, undefined, { signal })) {
      const run = random.pick(ledger.open);
      if (run) {
        process.kill(run.pid, "SIGKILL");
      }
    }
  } catch {
    // The signal, or a worker that had just ended.
  }
}

async function allTasks(storage: Storage, deploymentId: string): Promise<string[]> {
  const ids: string[] = [];
  let before: string | undefined;
  do {
    const page = await storage.listTasks({ deploymentId, limit: 200, ...(before && { before }) });
    ids.push(...page.tasks.map(({ taskId }) => taskId));
    before = page.nextBefore;
  } while (before !== undefined);
  return ids;
}

test(`every acknowledged task ends once although the storage fails (TESSERA_SEED=${SEED})`, async () => {
  const random = new Random(SEED);
  const told: Told = {
    acknowledged: new Map(),
    cancelled: new Set(),
    uncertain: new Set(),
    wrong: [],
  };
  using folder = new TestFolder();
  await using storage = await openSqlite(folder.file());
  await using ledger = await Ledger.start();
  const faults = new Faults(random, RATES);
  const failing = faults.around(storage);
  await using maintenance = maintenanceOver(failing);
  await using hosted = await host(failing, maintenance);
  const key = (taskId: string) => ({ deploymentId: hosted.name, taskId });

  faults.active = true;
  await callers(hosted, random, { told, ledger });
  faults.active = false;
  await faults.settled();

  const stored = await allTasks(storage, hosted.name);
  await Promise.all(stored.map((taskId) => hosted.tasks.result({ taskId, waitMs: 30_000 })));
  const found = [...told.wrong];
  for (const taskId of new Set([...stored, ...told.acknowledged.keys()])) {
    const history = await historyOf(storage, key(taskId), { told, ledger });
    const number = told.acknowledged.get(taskId);
    if (number === undefined && history.status === "success") {
      const { number: uncertain } = history.result as { number: number };
      if (!told.uncertain.has(uncertain)) {
        found.push(`${taskId} was not acknowledged, and its number ${uncertain} has another task`);
      }
      continue;
    }
    const broken = number === undefined ? [] : violations(history);
    found.push(...broken.map(({ message }) => `${taskId}: ${message}`));
  }
  expect(found).toEqual([]);
  expect(told.acknowledged.size).toBeGreaterThan(CALLS / 2);
  const leftover = await storage.countTasks({ deploymentId: hosted.name });
  expect(leftover.filter(({ queued, running }) => queued + running > 0)).toEqual([]);
  for (const method of ["submitTasks", "claimTasks", "endAttempts"]) {
    expect(faults.counts.get(`${method} executed`)).toBeGreaterThan(0);
  }
}, 120_000);
