import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { MIGRATIONS } from "../../../src/storage/sqlite/schema.ts";
import { eventLog } from "../../../src/tasks/event.ts";
import { attempt, claim, counts, endAttempt, json, key, newTask, openLease } from "../fixtures.ts";
import { openSqlite, TestFolder } from "./databases.ts";

const OPEN = fileURLToPath(new URL("./open.ts", import.meta.url));

/** Opens the file in a process of its own; answers "opened" or the message of the refusal. */
function openElsewhere(path: string): string {
  return execFileSync(process.execPath, [OPEN, path], { encoding: "utf8" }).trim();
}

async function refusal(path: string): Promise<string> {
  const opened = openSqlite(path).then(async (storage) => {
    await storage[Symbol.asyncDispose]();
    return "opened";
  });
  return opened.catch((err: unknown) => (err instanceof Error ? err.message : String(err)));
}

describe("opening a SQLite database", () => {
  test("everything that was acknowledged is there after reopening", async () => {
    using folder = new TestFolder();
    const large = { json: "[0]", files: [{ contentType: "text/plain", data: new Uint8Array(9) }] };
    const idempotency = { key: "k", digest: "d" };
    let before: unknown;
    {
      await using storage = await openSqlite(folder.file());
      await openLease(storage);
      const tasks = [newTask("a", { idempotency }), newTask("b"), newTask("c")];
      await storage.submitTasks({ tasks });
      await claim(storage, { limit: 2 });
      const body = { kind: "progress", fraction: 0.5, message: "half" } as const;
      await storage.recordEvents({ events: [{ attempt: attempt("a"), timeMs: 1, body }] });
      await endAttempt(storage, attempt("a"), { status: "success", result: large });
      before = await storage.getHistory({ ...key("a"), afterSequence: 0, limit: 10 });
    }
    await using storage = await openSqlite(folder.file());
    const history = await storage.getHistory({ ...key("a"), afterSequence: 0, limit: 10 });
    expect(history).toEqual(before);
    expect(history && eventLog(history, 0)).toHaveLength(4);
    expect(await storage.getResult(key("a"))).toEqual(large);
    expect(await storage.getArguments(key("c"))).toEqual(json({ taskId: "c" }));
    expect(await counts(storage)).toEqual([{ endpoint: "work", queued: 1, running: 1 }]);
    const [again] = await storage.submitTasks({ tasks: [newTask("d", { idempotency })] });
    expect(again).toMatchObject({ outcome: "replayed", task: { taskId: "a" } });
    expect(await endAttempt(storage, attempt("b"), { status: "cancelled" })).toBeDefined();
  });

  test("one in memory is empty again after reopening", async () => {
    {
      await using storage = await openSqlite(":memory:");
      expect(storage.capabilities).toEqual({ shared: false, durable: false });
      await storage.submitTasks({ tasks: [newTask("a")] });
    }
    await using storage = await openSqlite(":memory:");
    expect(await storage.getTask(key("a"))).toBeUndefined();
  });

  test("refuses a file that another process serves, until that one ends", async () => {
    using folder = new TestFolder();
    const path = folder.file();
    {
      await using storage = await openSqlite(path);
      expect(storage.capabilities).toEqual({ shared: false, durable: true });
      const message = `cannot open the database ${path}: another tessera process is using it; stop that one, or use another file`;
      expect(openElsewhere(path)).toBe(message);
      expect(await refusal(path)).toBe(message);
      await storage.submitTasks({ tasks: [newTask("a")] });
    }
    expect(openElsewhere(path)).toBe("opened");
  });

  test("refuses a served file under its other names too", async () => {
    using folder = new TestFolder();
    const path = folder.file();
    await using _storage = await openSqlite(path);
    symlinkSync(path, folder.file("link.db"));
    symlinkSync(folder.path, folder.file("folder"));
    expect(await refusal(folder.file("link.db"))).toMatch(/another tessera process/);
    expect(await refusal(join(folder.path, "folder", "tasks.db"))).toMatch(/another tessera/);
  });

  test("refuses a database of a newer version, and leaves it as it is", async () => {
    using folder = new TestFolder();
    const path = folder.file();
    const setVersion = (version: number): void => {
      const db = new DatabaseSync(path);
      db.exec(`PRAGMA user_version = ${version}`);
      db.close();
    };
    expect(await refusal(path)).toBe("opened");
    setVersion(99);
    expect(await refusal(path)).toMatch(
      /^cannot open the database .*tasks\.db: its schema has version 99, .*run a newer version of tessera, or use another database$/,
    );
    setVersion(MIGRATIONS.length);
    expect(await refusal(path)).toBe("opened");
  });

  test("refuses a file of another kind, and leaves it as it is", async () => {
    using folder = new TestFolder();
    const path = folder.file();
    const text = "Once upon a time there was a file that was no database at all.\n".repeat(100);
    writeFileSync(path, text);
    expect(await refusal(path)).toBe(
      `cannot open the database ${path}: it is a file of another kind; use another path`,
    );
    expect(readFileSync(path, "utf8")).toBe(text);
    writeFileSync(path, "");
    expect(await refusal(path)).toBe("opened");
  });

  test("refuses a path in a folder that does not exist, until it does", async () => {
    using folder = new TestFolder();
    const path = folder.file("missing/tasks.db");
    expect(await refusal(path)).toBe(
      `cannot open the database ${path}: the folder ${folder.file("missing")} does not exist`,
    );
    mkdirSync(folder.file("missing"));
    expect(await refusal(path)).toBe("opened");
  });

  test("refuses a path that is a folder", async () => {
    using folder = new TestFolder();
    expect(await refusal(folder.path)).toBe(
      `cannot open the database ${folder.path}: it is a folder`,
    );
  });

  test("refuses a folder that cannot be written to", async () => {
    using folder = new TestFolder();
    mkdirSync(folder.file("closed"), { mode: 0o555 });
    // Permissions do not hold root back, but nobody can create a file there.
    const closed = process.getuid?.() === 0 ? "/proc" : folder.file("closed");
    expect(await refusal(join(closed, "tasks.db"))).toMatch(
      /^cannot open the database .*tasks\.db: .*\(can this user write to its folder\?\)$/,
    );
  });

  test("disposing of it twice, even at once, is the same as once", async () => {
    using folder = new TestFolder();
    const storage = await openSqlite(folder.file());
    const first = storage[Symbol.asyncDispose]();
    await storage[Symbol.asyncDispose]();
    expect(await refusal(folder.file())).toBe("opened");
    await first;
    await storage[Symbol.asyncDispose]();
  });
});
