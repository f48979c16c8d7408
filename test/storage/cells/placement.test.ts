/** Where new tasks go, also where cells come and are closed. */
import { describe, expect, test, vi } from "vitest";
import { closeCell } from "../../../src/storage/cells/close.ts";
import { CellsStorage } from "../../../src/storage/cells/storage.ts";
import { PostgresStorage } from "../../../src/storage/postgres/storage.ts";
import { unavailable } from "../../../src/storage/unavailable.ts";
import { HOME_CELL } from "../../../src/tasks/id.ts";
import { claim, DEPLOYMENT, key, NOW_MS, newTask, openLease, submit } from "../fixtures.ts";
import { ask, newDatabase } from "../postgres/databases.ts";
import { beginEmpty, keyed, newId, opened, openToKeys, placing, withCell } from "./beginnings.ts";
import { databaseUrls } from "./databases.ts";

beginEmpty();

describe("new tasks", () => {
  test("go to one cell after the other, retries to that of their task, and none to home", async () => {
    await using storage = await opened();
    const places = [];
    for (let one = 0; one < 4; one += 1) {
      places.push(await storage.placeTask(placing));
    }
    expect(places.sort()).toEqual([1, 1, 2, 2]);
    expect(await storage.placeTask({ ...placing, retryOf: newId(2) })).toBe(2);
  });

  test("with one key go to one cell, whichever node is asked, and keys to all cells", async () => {
    await (await opened())[Symbol.asyncDispose]();
    await openToKeys();
    await using other = await opened();
    await using again = await opened();
    const keys = Array.from({ length: 40 }, (_, at) => `customer-${at}`);
    const placesOf = (storage: CellsStorage, name: "key" | "idempotencyKey") =>
      Promise.all(keys.map((each) => storage.placeTask({ ...placing, [name]: each })));
    for (const name of ["key", "idempotencyKey"] as const) {
      const places = await placesOf(other, name);
      expect(await placesOf(again, name)).toEqual(places);
      expect(new Set(places)).toEqual(new Set([1, 2]));
    }
  });

  test("with an idempotency key go to a cell that answers, also where another is away that began with it", async () => {
    await (await opened())[Symbol.asyncDispose]();
    const [home] = await databaseUrls();
    const times = await ask(home, "SELECT DISTINCT keyed_from_ms FROM tessera.cells");
    expect(times).toHaveLength(1);
    await ask(home, "UPDATE tessera.cells SET keyed_from_ms = 1");
    const { storage: asked, cell } = await withCell({ b: true });
    await using storage = asked;
    vi.spyOn(cell, "beside").mockRejectedValue(unavailable(new Error("it is away")));
    const keys = Array.from({ length: 12 }, (_, at) => `invoice-${at}`);
    const places = await Promise.all(
      keys.map((each) => storage.placeTask({ ...placing, idempotencyKey: each })),
    );
    expect(new Set(places)).toEqual(new Set([1, 2]));
  });

  test("with an idempotency key from before a cell was there are found where they are", async () => {
    const idempotencyKeys = Array.from({ length: 12 }, (_, at) => `invoice-${at}`);
    {
      await using storage = await opened();
      for (const each of idempotencyKeys) {
        expect(await storage.placeTask({ ...placing, idempotencyKey: each })).toBe(HOME_CELL);
      }
      await submit(storage, keyed(newId(HOME_CELL), "invoice-0"));
    }
    const [home] = await databaseUrls();
    await ask(home, "UPDATE tessera.cells SET keyed_from_ms = 1 WHERE name = 'a'");
    await ask(home, "UPDATE tessera.cells SET keyed_from_ms = 9e15 WHERE name = 'b'");
    {
      await using storage = await opened();
      const places = await Promise.all(
        idempotencyKeys.map((each) => storage.placeTask({ ...placing, idempotencyKey: each })),
      );
      expect(places).toEqual([HOME_CELL, ...idempotencyKeys.slice(1).map(() => 1)]);
      await submit(storage, ...idempotencyKeys.slice(1).map((each) => keyed(newId(1), each)));
    }
    await openToKeys();
    await using storage = await opened();
    const places = await Promise.all(
      idempotencyKeys.map((each) => storage.placeTask({ ...placing, idempotencyKey: each })),
    );
    expect(places).toEqual([HOME_CELL, ...idempotencyKeys.slice(1).map(() => 1)]);
    const fresh = await Promise.all(
      idempotencyKeys.map((each) => storage.placeTask({ ...placing, idempotencyKey: `${each}!` })),
    );
    expect(new Set(fresh)).toEqual(new Set([1, 2]));
    // Also where they have a key of who shares the endpoint, which is placed before they are.
    const keys = Array.from({ length: 12 }, (_, at) => `customer-${at}`);
    const shared = (idempotencyKey: string) =>
      Promise.all(keys.map((each) => storage.placeTask({ ...placing, key: each, idempotencyKey })));
    const [first, second, other] = [
      await shared("invoice-0"),
      await shared("invoice-1"),
      await shared("invoice-0!"),
    ];
    expect(new Set(first)).toEqual(new Set([HOME_CELL]));
    const ofKeys = await Promise.all(
      keys.map((each) => storage.placeTask({ ...placing, key: each })),
    );
    expect(new Set(ofKeys)).toEqual(new Set([1, 2]));
    expect(other).toEqual(ofKeys);
    expect(new Set(second)).toEqual(new Set([1]));
  });
});

test("no key is placed anew until what was on its way to its earlier place has arrived", async () => {
  await (await opened())[Symbol.asyncDispose]();
  const [home] = await databaseUrls();
  await ask(
    home,
    `UPDATE tessera.cells SET keyed_from_ms = CASE name WHEN 'a' THEN 1
       ELSE (extract(epoch FROM now()) * 1000)::bigint - 5000 END`,
  );
  await using storage = await opened();
  const places = await Promise.allSettled(
    Array.from({ length: 20 }, (_, at) =>
      storage.placeTask({ ...placing, idempotencyKey: `order-${at}` }),
    ),
  );
  const refused = places.filter(({ status }) => status === "rejected");
  expect(refused.length).toBeGreaterThan(0);
  expect(new Set(places.map((one) => (one.status === "fulfilled" ? one.value : 1)))).toEqual(
    new Set([1]),
  );
});

describe("a cell that is closed", () => {
  const close = async (name: string): Promise<void> => {
    const [home] = await databaseUrls();
    await using storage = new PostgresStorage(home);
    await storage.start();
    await storage.beside((db) => closeCell(db, name));
    // Long ago, so that all nodes know.
    await ask(home, "UPDATE tessera.cells SET closed_from_ms = 2 WHERE closed_from_ms > 0");
  };

  test("takes no new tasks but retries, and keeps those that it has, with their keys", async () => {
    await (await opened())[Symbol.asyncDispose]();
    const [home] = await databaseUrls();
    await ask(home, "UPDATE tessera.cells SET keyed_from_ms = 1");
    const keys = Array.from({ length: 12 }, (_, at) => `invoice-${at}`);
    const placesOf = (storage: CellsStorage, suffix = "") =>
      Promise.all(
        keys.map((each) => storage.placeTask({ ...placing, idempotencyKey: `${each}${suffix}` })),
      );
    let places: number[];
    {
      await using storage = await opened();
      places = await placesOf(storage);
      expect(new Set(places)).toEqual(new Set([1, 2]));
      await submit(storage, ...keys.map((each, at) => keyed(newId(places[at]), each)));
    }
    await close("b");
    await using storage = await opened();
    await openLease(storage);
    expect(await placesOf(storage)).toEqual(places);
    expect(new Set(await placesOf(storage, "!"))).toEqual(new Set([1]));
    expect(await storage.placeTask(placing)).toBe(1);
    expect(await storage.placeTask(placing)).toBe(1);
    expect(await storage.placeTask({ ...placing, key: "customer" })).toBe(1);
    expect(await storage.placeTask({ ...placing, retryOf: newId(2) })).toBe(2);
    expect(await claim(storage, { limit: keys.length })).toHaveLength(keys.length);
    await expect(close("c")).rejects.toThrow('the platform has no cell "c"');
  });

  test("may be left out once nothing is left in it, and not before", async () => {
    const [home, a] = await databaseUrls();
    const start = async (): Promise<CellsStorage> => {
      const storage = new CellsStorage({
        home: new PostgresStorage(home),
        cells: [{ name: "a", storage: new PostgresStorage(a) }],
      });
      try {
        await storage.start();
      } catch (err) {
        await storage[Symbol.asyncDispose]();
        throw err;
      }
      return storage;
    };
    const taskId = newId(2);
    {
      await using storage = await opened();
      await submit(storage, newTask(taskId));
      await close("b");
    }
    {
      await using storage = await opened();
      await expect(start()).rejects.toThrow("the platform has cell b with tasks in it");
      const remove = async (): Promise<void> => {
        const [outcome] = await storage.deleteTasks({
          ...{ deploymentId: DEPLOYMENT, taskIds: [taskId], nowMs: NOW_MS },
        });
        expect(outcome).toBe("deleted");
      };
      const emptied = () =>
        expect.poll(() => ask(home, "SELECT name FROM tessera.cells WHERE emptied"), {
          timeout: 20_000,
        });
      await remove();
      await emptied().toEqual([{ name: "b" }]);
      // Of a node that stood still since before the cell was closed.
      await submit(storage, newTask(taskId));
      await emptied().toEqual([]);
      await remove();
      await emptied().toEqual([{ name: "b" }]);
    }
    await using storage = await start();
    expect(storage.cells.has(2)).toBe(true);
    expect(await storage.getTask(key(taskId))).toBeUndefined();
    // Its number is not given to another one.
    const c = await newDatabase();
    await using further = new CellsStorage({
      home: new PostgresStorage(home),
      cells: [
        { name: "a", storage: new PostgresStorage(a) },
        { name: "c", storage: new PostgresStorage(c) },
      ],
    });
    await further.start();
    expect([...further.cells]).toContain(3);
  });
});
