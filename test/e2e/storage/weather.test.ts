import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, linkSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { text as readText } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { Worker } from "node:worker_threads";
import { describe, expect, it, test } from "vitest";
import { key, newTask } from "../../storage/fixtures.ts";
import { openSqlite, TestFolder } from "../../storage/sqlite/databases.ts";
import { type Served, type Shown, serve } from "../serve/served.ts";

const MEMORY_LOST = fileURLToPath(new URL("./memory-lost.ts", import.meta.url));

const readiness = async (served: Served): Promise<number> => (await served.get("/readyz")).status;

/** Submits a task with arguments of this length; its id, or undefined when it was answered 503. */
async function submit(served: Served, length = 10): Promise<string | undefined> {
  const answer = await served.post("/repeat_later/submit", { text: "x".repeat(length) });
  if (answer.status === 503) {
    expect(answer.json).toMatchObject({ code: "unavailable" });
    expect(answer.text).toContain("STORAGE_UNAVAILABLE");
    expect(answer.headers.get("retry-after")).toBe("1");
    return undefined;
  }
  expect(answer.status, answer.text).toBe(202);
  return (answer.json as Shown).task_id;
}

/** Ready again and without a gap: everything that was acknowledged has ended well. */
async function recovered(served: Served, acknowledged: readonly string[]): Promise<void> {
  await expect.poll(() => readiness(served)).toBe(200);
  const again = await submit(served);
  for (const taskId of [...acknowledged, again ?? ""]) {
    expect((await served.result("repeat_later", taskId)).status).toBe(200);
  }
}

describe("a served database", () => {
  it("that another program locks is answered 503 and not ready, until it is free", async () => {
    using folder = new TestFolder();
    await using served = await serve("calls", { database: folder.file() });
    const before = await submit(served);
    await served.result("repeat_later", before ?? "");
    const other = new DatabaseSync(folder.file());
    other.exec("BEGIN IMMEDIATE");
    expect(await submit(served)).toBeUndefined();
    await expect.poll(() => readiness(served)).toBe(503);
    other.close();
    await recovered(served, [before ?? ""]);
  });

  it("that was moved away is answered 503 and not ready, until it is back", async () => {
    using folder = new TestFolder();
    await using served = await serve("calls", { database: folder.file() });
    const before = await submit(served);
    renameSync(folder.file(), folder.file("elsewhere.db"));
    // What was looked at just now is believed for a moment.
    await expect.poll(() => readiness(served)).toBe(503);
    expect(await submit(served)).toBeUndefined();
    renameSync(folder.file("elsewhere.db"), folder.file());
    await recovered(served, [before ?? ""]);
  });

  it("that was deleted is not replaced by an empty one, and its server can still stop", async () => {
    using folder = new TestFolder();
    const served = await serve("calls", { database: folder.file() });
    await submit(served);
    for (const suffix of ["", "-wal", "-shm"]) {
      rmSync(folder.file() + suffix);
    }
    await expect.poll(() => readiness(served)).toBe(503);
    expect(await submit(served)).toBeUndefined();
    await served.stop();
    expect(() => linkSync(folder.file(), folder.file("copy"))).toThrow("ENOENT");
  });
});

/** A small disk of its own; a text says why there is none. */
class SmallDisk implements Disposable {
  readonly #folder = new TestFolder();
  readonly refused: string | undefined;

  constructor() {
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=4m", "tmpfs", this.#folder.path], {
        stdio: "pipe",
      });
    } catch (err) {
      this.refused = `no tmpfs can be mounted here: ${err instanceof Error ? err.message : err}`;
    }
  }

  file(name: string): string {
    return join(this.#folder.path, name);
  }

  /** Takes all that is free. */
  fill(): void {
    try {
      for (;;) {
        appendFileSync(this.file("ballast"), Buffer.alloc(4_096));
      }
    } catch (err) {
      expect((err as NodeJS.ErrnoException).code).toBe("ENOSPC");
    }
  }

  [Symbol.dispose](): void {
    if (this.refused === undefined) {
      execFileSync("umount", ["--lazy", this.#folder.path]);
    }
    this.#folder[Symbol.dispose]();
  }
}

test("a full disk is answered 503 and not ready, and what was acknowledged is there when it is not", async ({
  skip,
}) => {
  using disk = new SmallDisk();
  skip(disk.refused !== undefined, disk.refused);
  await using served = await serve("calls", { database: disk.file("tasks.db") });
  const acknowledged: string[] = [];
  writeFileSync(disk.file("ballast"), Buffer.alloc(2_000_000));
  const submitUntilRefused = async (characters?: number): Promise<void> => {
    for (;;) {
      const taskId = await submit(served, characters);
      if (taskId === undefined) {
        return;
      }
      acknowledged.push(taskId);
      expect(acknowledged.length).toBeLessThan(500);
    }
  };
  await submitUntilRefused(100_000);
  disk.fill();
  // What still finds room in the write-ahead log is promised like any other.
  await submitUntilRefused(100_000);
  await submitUntilRefused();
  await expect.poll(() => readiness(served)).toBe(503);
  expect(await submit(served, 100_000)).toBeUndefined();
  expect((await served.get("/livez")).status).toBe(200);
  rmSync(disk.file("ballast"));
  await recovered(served, acknowledged);
});

describe("a storage thread that dies", () => {
  /** The thread of the storage that is opened next. */
  const nextThread = async (): Promise<Worker> => {
    const [thread] = await once(process, "worker");
    return thread as Worker;
  };

  it("fails the calls under way and is replaced, with everything that was acknowledged", async () => {
    using folder = new TestFolder();
    const spawned = nextThread();
    await using storage = await openSqlite(folder.file());
    await storage.submitTasks({ tasks: [newTask("a")] });
    const replaced = nextThread();
    const ended = (await spawned).terminate();
    await expect(storage.submitTasks({ tasks: [newTask("b")] })).rejects.toMatchObject({
      reason: "STORAGE_UNAVAILABLE",
    });
    await ended;
    await expect(storage.getTask(key("a"))).rejects.toMatchObject({
      reason: "STORAGE_UNAVAILABLE",
    });
    await replaced;
    const read = (taskId: string) => storage.getTask(key(taskId)).catch(() => "not yet");
    await expect.poll(() => read("a")).toMatchObject({ status: "queued" });
    await storage.submitTasks({ tasks: [newTask("b")] });
    expect(await read("b")).toMatchObject({ status: "queued" });
  });

  it("fails all calls, those of two batches under way and those that wait behind them", async () => {
    using folder = new TestFolder();
    const spawned = nextThread();
    await using storage = await openSqlite(folder.file());
    const ended = (await spawned).terminate();
    const settled = await Promise.allSettled(
      Array.from({ length: 100 }, (_, index) =>
        storage.submitTasks({ tasks: [newTask(`t${index}`)] }),
      ),
    );
    await ended;
    const reasons = settled.map((each) => each.status === "rejected" && each.reason.reason);
    expect(new Set(reasons)).toEqual(new Set(["STORAGE_UNAVAILABLE"]));
  });

  it("is not replaced when the storage is closed meanwhile", async () => {
    using folder = new TestFolder();
    const spawned = nextThread();
    const storage = await openSqlite(folder.file());
    await (await spawned).terminate();
    await storage[Symbol.asyncDispose]();
    await using again = await openSqlite(folder.file());
    expect(await again.getTask(key("a"))).toBeUndefined();
  });

  it("ends the process when the database was in memory, and says why", async () => {
    const child = spawn(process.execPath, [MEMORY_LOST], { stdio: ["ignore", "ignore", "pipe"] });
    const [stderr, [code]] = await Promise.all([readText(child.stderr), once(child, "exit")]);
    expect(code).toBe(1);
    expect(stderr).toContain("the database in memory is lost, and every task in it");
  });
});
