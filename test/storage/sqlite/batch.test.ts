import { readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import type { NewTask, SubmitOutcome } from "../../../src/storage/storage.ts";
import { counts, key, newTask, openLease } from "../fixtures.ts";
import { openSqlite, TestFolder } from "./databases.ts";

/** A task that no database takes: it was created at no time. */
const IMPOSSIBLE: NewTask = { ...newTask("impossible"), createdAtMs: Number.NaN };

/**
 * Transactions in the write-ahead log: frames whose header says how large the
 * database is after them are commits (https://www.sqlite.org/fileformat2.html,
 * section 4.1). Frames with other salts are left over from before a checkpoint.
 */
function countCommits(path: string): number {
  const wal = readFileSync(`${path}-wal`);
  const frameBytes = 24 + wal.readUInt32BE(8);
  const salts = wal.subarray(16, 24);
  let commits = 0;
  for (let at = 32; at + frameBytes <= wal.length; at += frameBytes) {
    const current = wal.subarray(at + 8, at + 16).equals(salts);
    commits += current && wal.readUInt32BE(at + 4) > 0 ? 1 : 0;
  }
  return commits;
}

describe("calls that arrive together", () => {
  test.each([
    { count: 31, commits: 1, why: "which leaves at the end of the turn" },
    {
      count: 1_000,
      commits: 3,
      why: "of which two leave early with 32, and one has all the others",
    },
  ])("share transactions in one turn: $count calls, $commits, $why", async ({ count, commits }) => {
    using folder = new TestFolder();
    await using storage = await openSqlite(folder.file());
    // The log begins anew with the first write after the checkpoint of the start.
    await openLease(storage);
    const before = countCommits(folder.file());
    const calls = Array.from({ length: count }, (_, index) =>
      storage.submitTasks({ tasks: [newTask(`t${index}`)] }),
    );
    const outcomes = (await Promise.all(calls)).flat();
    expect(outcomes.every(({ outcome }) => outcome === "stored")).toBe(true);
    expect(countCommits(folder.file()) - before).toBe(commits);
  });

  test("share transactions when many callers wait for theirs in turn", async () => {
    using folder = new TestFolder();
    await using storage = await openSqlite(folder.file());
    // The log begins anew with the first write after the checkpoint of the start.
    await openLease(storage);
    const before = countCommits(folder.file());
    const callers = Array.from({ length: 50 }, async (_, caller) => {
      for (let call = 0; call < 20; call++) {
        await storage.submitTasks({ tasks: [newTask(`t${caller}-${call}`)] });
      }
    });
    await Promise.all(callers);
    expect(await counts(storage)).toEqual([{ endpoint: "work", queued: 1_000, running: 0 }]);
    expect(countCommits(folder.file()) - before).toBeLessThanOrEqual(100);
  });

  test("do not fail with one of them", async () => {
    await using storage = await openSqlite(":memory:");
    const submit = (...tasks: NewTask[]) => storage.submitTasks({ tasks });
    const settled = await Promise.allSettled([
      submit(newTask("a")),
      submit(newTask("with-impossible"), IMPOSSIBLE),
      submit(newTask("b")),
      storage.getTask(key("a")),
    ]);
    expect(settled.map(({ status }) => status)).toEqual([
      "fulfilled",
      "rejected",
      "fulfilled",
      "fulfilled",
    ]);
    // A defect, not a database that is away: the same call would fail again.
    expect(settled[1]).toMatchObject({
      reason: { message: expect.stringMatching(/^submitTasks: /) },
    });
    expect(await storage.getTask(key("b"))).toMatchObject({ status: "queued" });
    expect(await storage.getTask(key("with-impossible"))).toBeUndefined();
    expect(await counts(storage)).toEqual([{ endpoint: "work", queued: 2, running: 0 }]);
  });

  test("get their own answers when one beside them cannot be sent", async () => {
    await using storage = await openSqlite(":memory:");
    await storage.submitTasks({ tasks: [newTask("mine"), newTask("theirs")] });
    const read = (taskId: string, count: number) =>
      Array.from({ length: count }, async () => (await storage.getTask(key(taskId)))?.taskId);
    const mine = read("mine", 31);
    const unsendable = storage.getHistory({
      ...key("mine"),
      limit: 1,
      afterSequence: (() => 0) as never,
    });
    const theirs = read("theirs", 40);
    await expect(unsendable).rejects.toThrow("could not be cloned");
    expect(new Set(await Promise.all(mine))).toEqual(new Set(["mine"]));
    expect(new Set(await Promise.all(theirs))).toEqual(new Set(["theirs"]));
  });

  test("fail together, not one after the other, when another program holds the file", async () => {
    using folder = new TestFolder();
    await using storage = await openSqlite(folder.file());
    const other = new DatabaseSync(folder.file());
    other.exec("BEGIN IMMEDIATE");
    const begunMs = performance.now();
    const settled = await Promise.allSettled(
      ["a", "b", "c"].map((taskId) => storage.submitTasks({ tasks: [newTask(taskId)] })),
    );
    expect(settled.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    // One wait of 5 s for the lock, not three.
    expect(performance.now() - begunMs).toBeLessThan(9_000);
    other.exec("ROLLBACK");
    other.close();
    expect(await storage.submitTasks({ tasks: [newTask("a")] })).toMatchObject([
      { outcome: "stored" },
    ]);
  }, 20_000);

  test("are refused when too many wait already", async () => {
    await using storage = await openSqlite(":memory:");
    // 50,000 wait behind two batches of 32.
    const calls = Array.from({ length: 50_066 }, () => storage.getTask(key("none")));
    const settled = await Promise.allSettled(calls);
    expect(settled.filter(({ status }) => status === "rejected")).toHaveLength(2);
    expect(settled.at(-1)).toMatchObject({ reason: { reason: "STORAGE_UNAVAILABLE" } });
  });
});

describe("calls around the end", () => {
  const REFUSED = { name: "ConnectError", reason: "STORAGE_UNAVAILABLE", retryAfterMs: 1_000 };

  test("are refused before the start and after the end", async () => {
    const { SqliteStorage } = await import("../../../src/storage/sqlite/storage.ts");
    const storage = new SqliteStorage(":memory:");
    await expect(storage.getTask(key("a"))).rejects.toMatchObject(REFUSED);
    await storage.start();
    await storage[Symbol.asyncDispose]();
    await expect(storage.getTask(key("a"))).rejects.toMatchObject(REFUSED);
    await expect(storage.submitTasks({ tasks: [newTask("a")] })).rejects.toMatchObject(REFUSED);
  });

  test("all settle when it ends under them, and what was acknowledged is there", async () => {
    using folder = new TestFolder();
    const acknowledged: string[] = [];
    {
      const storage = await openSqlite(folder.file());
      const submit = async (taskId: string): Promise<void> => {
        const outcomes: SubmitOutcome[] = await storage.submitTasks({ tasks: [newTask(taskId)] });
        acknowledged.push(...outcomes.map((one) => ("task" in one ? one.task.taskId : "")));
      };
      await submit("first");
      const sent = Array.from({ length: 50 }, (_, index) => submit(`sent-${index}`));
      await new Promise(setImmediate);
      const waiting = Array.from({ length: 50 }, (_, index) => submit(`waiting-${index}`));
      const ended = storage[Symbol.asyncDispose]();
      await Promise.allSettled([...sent, ...waiting, ended]);
    }
    await using storage = await openSqlite(folder.file());
    expect(acknowledged.length).toBeGreaterThan(0);
    for (const taskId of acknowledged) {
      expect(await storage.getTask(key(taskId))).toBeDefined();
    }
  });
});
