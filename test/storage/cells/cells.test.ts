/** What is only so over several databases: where tasks are, what is asked of all, and cells that are away. */
import { afterAll, describe, expect, test, vi } from "vitest";
import type { CellChange } from "../../../src/storage/cells/cell.ts";
import { refuseCell, refuseCells } from "../../../src/storage/cells/identity.ts";
import { CellsStorage } from "../../../src/storage/cells/storage.ts";
import { type PostgresOptions, PostgresStorage } from "../../../src/storage/postgres/storage.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { unavailable } from "../../../src/storage/unavailable.ts";
import { cellOfTaskId, HOME_CELL } from "../../../src/tasks/id.ts";
import { SilentProxy } from "../../chaos/proxy.ts";
import { type PostgresServer, startPostgres } from "../../postgres.ts";
import {
  claim,
  counts,
  DEPLOYMENT,
  ENDPOINT,
  endAttempt,
  key,
  LEASE,
  listAll,
  NOW_MS,
  newTask,
  openLease,
  submit,
  success,
  taskIds,
} from "../fixtures.ts";
import { ask, newDatabase } from "../postgres/databases.ts";
import { beginEmpty, newId, opened, placing, withCell } from "./beginnings.ts";
import { databaseUrls } from "./databases.ts";
import { guarded } from "./guarded.ts";

const UNAVAILABLE = { reason: "STORAGE_UNAVAILABLE" };

/** How many tasks each database has: home, a and b. */
async function tasksOf(): Promise<number[]> {
  const urls = await databaseUrls();
  const rows = await Promise.all(
    urls.map((url) => ask(url, "SELECT count(*)::integer AS count FROM tessera.tasks")),
  );
  return rows.map(([row]) => Number(row?.count));
}

beginEmpty();

describe("tasks in cells", () => {
  test("are stored in the cell that their id says, and found there", async () => {
    await using storage = await opened();
    const ids = [HOME_CELL, 1, 2, 2].map((cell) => newId(cell));
    await submit(storage, ...ids.map((id) => newTask(id)));
    expect(await tasksOf()).toEqual([1, 1, 2]);
    for (const id of ids) {
      expect(await storage.getTask(key(id))).toMatchObject({ taskId: id, status: "queued" });
    }
    const unknown = newId(77);
    expect(await storage.getTask(key(unknown))).toBeUndefined();
    expect(storage.cells.has(77)).toBe(false);
  });

  test("are claimed wherever they are, as many as are wanted and none twice", async () => {
    await using storage = await opened();
    await openLease(storage);
    const ids = [HOME_CELL, 1, 1, 2, 2, 2].map((cell) => newId(cell));
    await submit(storage, ...ids.map((id) => newTask(id)));
    const first = taskIds(await claim(storage, { limit: 4 }));
    const rest = taskIds(await claim(storage, { limit: 4 }));
    expect([first.length, rest.length]).toEqual([4, 2]);
    expect([...first, ...rest].sort()).toEqual([...ids].sort());
    expect(await counts(storage)).toEqual([{ endpoint: ENDPOINT, queued: 0, running: 6 }]);
    const attempts = await storage.listAttempts({ leaseIds: [LEASE] });
    expect(attempts).toHaveLength(6);
    for (const attempt of attempts) {
      expect(await endAttempt(storage, attempt, success(1))).toMatchObject({ status: "success" });
    }
    expect(await counts(storage)).toEqual([]);
  });

  test("are listed together, newest first, in pages that have all of them once", async () => {
    await using storage = await opened();
    const ids = Array.from({ length: 23 }, (_, at) => newId((at * 7) % 3));
    await submit(storage, ...ids.map((id) => newTask(id)));
    const listed = await listAll(storage, { deploymentId: DEPLOYMENT, limit: 4 });
    expect(taskIds(listed)).toEqual([...ids].reverse());
    const search = { deploymentIds: [DEPLOYMENT], limit: 20 };
    const { keys, nextBefore } = await storage.searchKeys(search);
    expect(keys.map(({ taskId }) => taskId)).toEqual([...ids].reverse().slice(0, 20));
    const rest = await storage.searchKeys({ ...search, ...(nextBefore && { before: nextBefore }) });
    expect(rest.keys.map(({ taskId }) => taskId)).toEqual([...ids].reverse().slice(20));
    const states = await storage.countStates({
      deploymentIds: [DEPLOYMENT],
      nowMs: NOW_MS + 1_000,
    });
    expect(states.queued).toEqual({ count: 23, isPartial: false });
  });

  test("share the limit of their queue", async () => {
    await using storage = await opened();
    await submit(storage, newTask(newId(1)), newTask(newId(HOME_CELL)));
    const queueLimit = 3;
    await using other = await opened();
    const outcomes = await other.submitTasks({
      tasks: [newTask(newId(2), { queueLimit }), newTask(newId(2), { queueLimit })],
    });
    expect(outcomes).toMatchObject([{ outcome: "stored" }, { outcome: "queue_full", queued: 3 }]);
  });

  test("of a schedule share it, too", async () => {
    await using storage = (await withCell()).storage;
    await submit(storage, newTask(newId(1)), newTask(newId(1)));
    const made = await withCell();
    await using other = made.storage;
    const fireSchedule = vi.spyOn(made.home, "fireSchedule");
    fireSchedule.mockResolvedValue({ outcome: "queue_full", queued: 1 });
    const task = newTask(newId(), { queueLimit: 3 });
    const firing = { schedule: {} as never, atMs: NOW_MS, nextAtMs: NOW_MS };
    const fired = await other.fireSchedule({ ...firing, end: { outcome: "task", task } });
    expect(fired).toEqual({ outcome: "queue_full", queued: 3 });
    expect(fireSchedule.mock.lastCall?.[0].end).toMatchObject({ task: { queueLimit: 1 } });
  });

  test("are used up at home once, also where a load is brought again", async () => {
    await using storage = await opened();
    await submit(storage, newTask(newId(1)), newTask(newId(2)));
    const [home, a] = await databaseUrls();
    const used = async (): Promise<unknown> => {
      await storage.hosting.pruneUsage({ nowMs: NOW_MS, limit: 1 });
      return (await ask(home, "SELECT sum(tasks)::integer AS tasks FROM tessera.usage"))[0]?.tasks;
    };
    expect(await used()).toBe(2);
    // As if the node that has brought it had died before the cell forgot it.
    await ask(
      a,
      `UPDATE tessera.cell_identity SET load = '{"usage":[{"deployment_id":"${DEPLOYMENT}","day":1,
        "endpoint":"work","token_id":"","calls":0,"tasks":9,"run_ms":0,"gpu_ms":0,"bytes_in":0,
        "bytes_out":0}],"units":[]}'`,
    );
    expect(await used()).toBe(2);
    await submit(storage, newTask(newId(1)));
    expect(await used()).toBe(3);
  });
});

describe("a start", () => {
  const start = async (...cells: readonly (readonly [string, string])[]): Promise<void> => {
    const [home] = await databaseUrls();
    await using storage = new CellsStorage({
      home: new PostgresStorage(home),
      cells: cells.map(([name, url]) => ({ name, storage: new PostgresStorage(url) })),
    });
    await storage.start();
  };

  test("refuses databases that are not what they are named as, and says which", async () => {
    const [home, a, b] = await databaseUrls();
    await start(["a", a], ["b", b]);
    await expect(start(["a", a])).rejects.toThrow("the platform has cell b with tasks in it");
    await expect(start(["a", b], ["b", a])).rejects.toThrow(
      "the database of cell a is that of cell b, by another address",
    );
    await expect(start(["a", a], ["b", b], ["c", a])).rejects.toThrow(
      "the database of cell c is that of cell a, by another address",
    );
    await expect(start(["a", a], ["b", b], ["c", home])).rejects.toThrow(
      "the database of cell c is that of DATABASE_URL",
    );
    await expect(start(["a", a], ["b", await newDatabase()])).rejects.toThrow(
      "cell b has tasks, and the database that TESSERA_CELLS names for it is empty",
    );
  });

  test("without the setting refuses a platform that has cells, and a cell", async () => {
    const [home, a, b] = await databaseUrls();
    await start(["a", a], ["b", b]);
    const alone = async (url: string, check: PostgresOptions["check"]): Promise<void> => {
      await using storage = new PostgresStorage(url, { ...(check && { check }) });
      await storage.start();
    };
    await expect(alone(home, refuseCells)).rejects.toThrow("the platform has cells a, b");
    await expect(alone(a, refuseCells)).rejects.toThrow("DATABASE_URL leads to cell a");
    await expect(alone(a, refuseCell)).rejects.toThrow("DATABASE_URL leads to cell a");
    await alone(home, refuseCell);
    await alone(await newDatabase(), refuseCells);
  });

  test("refuses a database of another platform, or of one without cells", async () => {
    const [, a, b] = await databaseUrls();
    const other = await newDatabase();
    {
      await using foreign = new CellsStorage({
        home: new PostgresStorage(other),
        cells: [{ name: "b", storage: new PostgresStorage(b) }],
      });
      await foreign.start();
    }
    await expect(start(["a", a], ["b", b])).rejects.toThrow(
      "the database of cell b belongs to another platform, as its cell b",
    );
    await expect(start(["a", a], ["b", other])).rejects.toThrow("another platform, as its home");
    const alone = await newDatabase();
    {
      await using storage = new PostgresStorage(alone);
      await storage.start();
      await submit(storage, newTask(newId()));
    }
    await expect(start(["a", a], ["c", alone])).rejects.toThrow(
      "the database of cell c is that of a platform, with people or tasks in it",
    );
  });
});

describe("a cell that is away", () => {
  let server: PostgresServer | undefined;
  const changes: (readonly [string, CellChange])[] = [];

  afterAll(() => server?.[Symbol.asyncDispose]());

  /** Home and a are on one server, b is on its own. */
  const over = async (url: string, options: PostgresOptions = {}): Promise<CellsStorage> => {
    const [home, a] = await databaseUrls();
    const of = (address: string, further: PostgresOptions = {}) =>
      new PostgresStorage(address, { connections: 4, leaseClock: "caller", ...further });
    return new CellsStorage({
      home: of(home),
      cells: [
        { name: "a", storage: of(a) },
        { name: "b", storage: of(url, options) },
      ],
      onChange: (name, change) => void changes.push([name, change]),
    });
  };

  const became = (state: CellChange["state"]) =>
    expect
      .poll(() => changes.map(([name, change]) => `${name} ${change.state}`))
      .toContain(`b ${state}`);

  const placesOf = async (storage: Storage): Promise<Set<number | undefined>> => {
    const places = new Set<number | undefined>();
    for (let one = 0; one < 4; one += 1) {
      places.add(await storage.placeTask?.(placing));
    }
    return places;
  };

  test("keeps only its own tasks waiting, also from the start on, and has them when it is back", async () => {
    server = await startPostgres();
    const ids = [1, 2, 2].map((cell) => newId(cell));
    const [inA = "", inB = "", running = ""] = ids;
    {
      await using storage = await over(server.url);
      await storage.start();
      await openLease(storage);
      await submit(storage, newTask(inA), newTask(inB), newTask(running, { leaseId: LEASE }));
      expect(await storage.describeDatabase()).toMatchObject({ queued: 2, running: 1 });
      changes.length = 0;
      await server.stop();
      await became("away");
      expect(await storage.describeDatabase()).toMatchObject({
        ...{ queued: 1, running: 0 },
        cells: [
          { name: "a", up: true },
          { name: "b", up: false },
        ],
      });
      expect(await placesOf(storage)).toEqual(new Set([1]));
      await expect(storage.getTask(key(inB))).rejects.toMatchObject(UNAVAILABLE);
      await expect(submit(storage, newTask(newId(2)))).rejects.toMatchObject(UNAVAILABLE);
      // None of a submit is stored where a part cannot be: the caller submits all of it again.
      const together = [newTask(newId(1)), newTask(newId(2))];
      await expect(submit(storage, ...together)).rejects.toMatchObject(UNAVAILABLE);
      await expect(
        storage.listTasks({ deploymentId: DEPLOYMENT, limit: 10 }),
      ).rejects.toMatchObject(UNAVAILABLE);
      expect(taskIds(await claim(storage))).toEqual([inA]);
      const attempt = { ...key(inA), leaseId: LEASE, attempt: 1 };
      expect(await endAttempt(storage, attempt, success(1))).toMatchObject({ status: "success" });
      expect(await storage.renewLeases({ leaseIds: [LEASE], nowMs: NOW_MS, ttlMs: 1_000 })).toEqual(
        [LEASE],
      );
    }
    changes.length = 0;
    await using storage = await over(server.url);
    await storage.start();
    await became("away");
    expect(await placesOf(storage)).toEqual(new Set([1]));
    // Opened while the cell is away, and there once it is renewed.
    await openLease(storage, "lease-2");
    await server.start();
    await became("up");
    expect(await placesOf(storage)).toEqual(new Set([1, 2]));
    const renewed = { leaseIds: [LEASE, "lease-2"], nowMs: NOW_MS, ttlMs: 20_000 };
    expect(await storage.renewLeases(renewed)).toEqual(renewed.leaseIds);
    expect(taskIds(await claim(storage, { leaseId: "lease-2" }))).toEqual([inB]);
    const attempt = { ...key(running), leaseId: LEASE, attempt: 1 };
    expect(await endAttempt(storage, attempt, success(2))).toMatchObject({ status: "success" });
  });

  test("refuses also what it was asked before its network fell silent, so that claims go on", async () => {
    const [, , b] = await databaseUrls();
    const url = new URL(b);
    await using proxy = await SilentProxy.start(Number(url.port));
    url.port = String(proxy.port);
    // Its statements would wait for longer than the test.
    await using storage = await over(url.href, { timeoutMs: 600_000 });
    await storage.start();
    await openLease(storage);
    const inA = newId(1);
    await submit(storage, newTask(inA));
    changes.length = 0;
    proxy.silence();
    expect(taskIds(await claim(storage, { limit: 2 }))).toEqual([inA]);
    await expect(storage.getTask(key(newId(2)))).rejects.toMatchObject(UNAVAILABLE);
    await became("away");
    proxy.speak();
    await became("up");
  });

  test("begins anew what it had under way when it comes back with an older backup", async () => {
    server ??= await startPostgres();
    const url = new URL(server.url);
    const admin = server.url;
    await ask(admin, "CREATE DATABASE older");
    url.pathname = "/older";
    const taskId = newId(2);
    {
      await using storage = await over(url.href);
      await storage.start();
      await openLease(storage);
      await submit(storage, newTask(taskId, { leaseId: LEASE }));
    }
    await ask(admin, "CREATE DATABASE backup TEMPLATE older");
    await using storage = await over(url.href);
    await storage.start();
    const attempt = { ...key(taskId), leaseId: LEASE, attempt: 1 };
    expect(await endAttempt(storage, attempt, success(1))).toMatchObject({ status: "success" });
    changes.length = 0;
    await ask(admin, "ALTER DATABASE older ALLOW_CONNECTIONS false");
    await ask(
      admin,
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'older'",
    );
    await ask(admin, "ALTER DATABASE older RENAME TO gone");
    await ask(admin, "ALTER DATABASE backup RENAME TO older");
    await became("restored");
    // It was running at the time of the backup, under a lease that its node holds still.
    expect(await storage.getTask(key(taskId))).toMatchObject({ status: "queued" });
    expect(await endAttempt(storage, attempt, success(1))).toBeUndefined();
    await storage.renewLeases({ leaseIds: [LEASE], nowMs: NOW_MS, ttlMs: 20_000 });
    await openLease(storage, "lease-2");
    expect(await claim(storage, { leaseId: "lease-2" })).toMatchObject([
      { task: { taskId, attempt: 2 } },
    ]);
  });
});

describe("a cell that has carried out what it did not answer", () => {
  const lost = () => unavailable(new Error("its answer was lost"));

  test("has its claims looked for until it answers, also where it seems to be up", async () => {
    const made = await withCell();
    await using storage = made.storage;
    const { cell } = made;
    await openLease(storage);
    const taskId = newId(1);
    await submit(storage, newTask(taskId));
    const claimTasks = cell.claimTasks.bind(cell);
    vi.spyOn(cell, "claimTasks").mockImplementationOnce(async (parameters) => {
      await claimTasks(parameters);
      throw lost();
    });
    const claims = [{ endpoint: ENDPOINT, leaseId: LEASE, limit: 1 }];
    const claimed = await storage.claimTasks({ deploymentId: DEPLOYMENT, nowMs: NOW_MS, claims });
    expect(claimed).toEqual({ tasks: [], later: [], doubtful: [LEASE] });
    const leaseIds = [LEASE];
    vi.spyOn(cell, "listAttempts").mockRejectedValueOnce(lost());
    await expect(storage.listAttempts({ leaseIds })).rejects.toMatchObject(UNAVAILABLE);
    expect(await storage.listAttempts({ leaseIds })).toMatchObject([{ taskId, attempt: 1 }]);
    // Each by itself: the doubt of one keeps nobody from what the others have.
    vi.spyOn(cell, "listAttempts").mockRejectedValueOnce(lost());
    expect(await storage.listAttempts({ leaseIds, cell: HOME_CELL })).toEqual([]);
    await expect(storage.listAttempts({ leaseIds, cell: 1 })).rejects.toMatchObject(UNAVAILABLE);
    expect(await storage.listAttempts({ leaseIds, cell: 1 })).toMatchObject([{ taskId }]);
    // Nothing is in doubt of other leases.
    vi.spyOn(cell, "listAttempts").mockRejectedValueOnce(lost());
    expect(await storage.listAttempts({ leaseIds: ["lease-2"] })).toEqual([]);
  });

  /** The cell answers nothing from now on, until what is returned is called. */
  const fallSilent = (cell: PostgresStorage): (() => void) => {
    const beside = vi.spyOn(cell, "beside").mockRejectedValue(lost());
    return () => beside.mockRestore();
  };

  test("has a task looked for that it stored for a worker before it was away", async () => {
    const made = await withCell();
    await using storage = made.storage;
    const { cell } = made;
    await openLease(storage);
    const taskId = newId(1);
    let speak = () => {};
    const submitTasks = cell.submitTasks.bind(cell);
    vi.spyOn(cell, "submitTasks").mockImplementationOnce(async (parameters) => {
      await submitTasks(parameters);
      speak = fallSilent(cell);
      return new Promise(() => {});
    });
    const submitting = submit(storage, newTask(taskId, { leaseId: LEASE }));
    await expect(submitting).rejects.toMatchObject(UNAVAILABLE);
    const asked = { leaseIds: [LEASE], cell: 1 };
    await expect(storage.listAttempts(asked)).rejects.toMatchObject(UNAVAILABLE);
    speak();
    const found = await vi.waitFor(() => storage.listAttempts(asked), { timeout: 10_000 });
    expect(found).toMatchObject([{ taskId, attempt: 1 }]);
  });

  test.each(["an error", "silence"])(
    "leaves no adopted task running whose end nobody stores, after %s",
    async (after) => {
      const made = await withCell();
      await using storage = made.storage;
      const { cell } = made;
      const opened = { owner: "test", nowMs: NOW_MS, ttlMs: 20_000 };
      await storage.openLease({ ...opened, leaseId: LEASE, session: "secret" });
      const ids = [newId(HOME_CELL), newId(1)];
      await submit(storage, ...ids.map((id) => newTask(id, { leaseId: LEASE })));
      let speak = () => {};
      const adoptLease = cell.adoptLease.bind(cell);
      vi.spyOn(cell, "adoptLease").mockImplementationOnce(async (parameters) => {
        await adoptLease(parameters);
        if (after === "an error") {
          throw lost();
        }
        speak = fallSilent(cell);
        return new Promise(() => {});
      });
      const adopted = await storage.adoptLease({
        ...opened,
        leaseId: LEASE,
        session: "secret",
        newLeaseId: "lease-2",
        newSession: "next secret",
      });
      expect(adopted?.map(({ task, leaseId }) => [task.taskId, leaseId])).toEqual(
        ids.map((id) => [id, "lease-2"]),
      );
      speak();
      for (const taskId of ids) {
        await vi.waitFor(() => storage.getTask(key(taskId)), { timeout: 10_000 });
        const attempt = { ...key(taskId), leaseId: "lease-2", attempt: 1 };
        expect(await endAttempt(storage, attempt, success(1))).toMatchObject({ status: "success" });
      }
    },
  );
});

test("a statement about a task of another cell is noticed, in the question and in the answer", async () => {
  const { storage, cell } = await withCell();
  await using _storage = storage;
  const [inA, inB] = [newId(1), newId(2)];
  await submit(storage, newTask(inA));
  const a = guarded(cell, { cell: 1, cellOf: cellOfTaskId });
  expect(await a.getTask(key(inA))).toMatchObject({ taskId: inA });
  expect(() => a.getTask(key(inB))).toThrow(`has task ${inB} of cell 2`);
  expect(() => a.deleteTasks({ ...key(inA), taskIds: [inA, inB], nowMs: NOW_MS })).toThrow(inB);
  const b = guarded(cell, { cell: 2, cellOf: cellOfTaskId });
  const listing = b.listTasks({ deploymentId: DEPLOYMENT, limit: 1 });
  await expect(listing).rejects.toThrow(
    `an answer (listTasks) of cell 2 has task ${inA} of cell 1`,
  );
});

test("clocks of databases that differ by a minute end no lease, and each ends its own", async () => {
  const [home, a] = await databaseUrls();
  const now = Date.now();
  // Home's time is what it is told: a minute ahead of the clock of the cell.
  await using storage = new CellsStorage({
    home: new PostgresStorage(home, { leaseClock: "caller" }),
    cells: [{ name: "a", storage: new PostgresStorage(a) }],
  });
  await storage.start();
  const nowMs = now + 60_000;
  await storage.openLease({ leaseId: LEASE, owner: "test", nowMs, ttlMs: 20_000 });
  const ids = [newId(HOME_CELL), newId(1)];
  await submit(storage, ...ids.map((id) => newTask(id, { leaseId: LEASE })));
  expect(await storage.rescueExpired({ nowMs })).toEqual([]);
  expect(await storage.survey({ nowMs, deploymentIds: [DEPLOYMENT] })).toMatchObject({
    expiredLeases: false,
  });
  expect(await storage.renewLeases({ leaseIds: [LEASE], nowMs, ttlMs: 20_000 })).toEqual([LEASE]);
  const rescued = await storage.rescueExpired({ nowMs: nowMs + 30_000 });
  expect(taskIds(rescued)).toEqual([ids[0]]);
});
