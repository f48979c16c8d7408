/**
 * The floor of a durable queue on SQLite: Fastify, a storage thread with one table and the commits
 * of Tessera (synced, for all that came meanwhile together), and a worker process. A submit is
 * answered when its task is stored, a wait when its end is. It does nothing else: no validation,
 * tokens, services, errors, limits, retries, leases, events or metrics, and nothing that finds
 * again what a dead process had. Its argument is the path of its database.
 */
import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { nowMs, Results, serve } from "./routes.ts";

/** A task to store, or its end: the id, and the result as JSON. */
type Write = readonly [id: string, text: string, isEnd: boolean];

const [path = ""] = process.argv.slice(2);
if (!isMainThread) {
  storeAll();
} else if (process.send !== undefined) {
  // The worker process: it answers a list of calls by a list of results.
  process.on("message", (ids: string[]) => process.send?.(ids.map((id) => [id, nowMs()])));
} else {
  await serveAll();
}

function storeAll(): void {
  const db = new DatabaseSync(String(workerData));
  db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  db.exec("CREATE TABLE tasks (id TEXT PRIMARY KEY, arguments TEXT, result TEXT) WITHOUT ROWID");
  const submit = db.prepare("INSERT INTO tasks (id, arguments) VALUES (?, ?)");
  const end = db.prepare("UPDATE tasks SET result = ?2 WHERE id = ?1");
  parentPort?.on("message", (batch: Write[]) => {
    db.exec("BEGIN IMMEDIATE");
    for (const [id, text, isEnd] of batch) {
      (isEnd ? end : submit).run(id, text);
    }
    db.exec("COMMIT");
    parentPort?.postMessage(batch.length);
  });
}

async function serveAll(): Promise<void> {
  const results = new Results();
  const storage = new Worker(new URL(import.meta.url), { workerData: path });
  const worker = fork(new URL(import.meta.url), [], { serialization: "json" });
  const submitted = new Map<string, (id: string) => void>();
  /** What is to be written, and what is being written. */
  let next: Write[] = [];
  let under: Write[] = [];
  const write = (one: Write): void => {
    next.push(one);
    if (next.length === 1 && under.length === 0) {
      setImmediate(flush);
    }
  };
  const flush = (): void => {
    [under, next] = [next, []];
    if (under.length > 0) {
      storage.postMessage(under);
    }
  };
  storage.on("message", () => {
    const stored = under;
    flush();
    const calls = stored.flatMap(([id, , isEnd]) => (isEnd ? [] : [id]));
    if (calls.length > 0) {
      worker.send(calls);
    }
    for (const [id, text, isEnd] of stored) {
      if (isEnd) {
        results.finish(id, text);
      } else {
        submitted.get(id)?.(id);
        submitted.delete(id);
      }
    }
  });
  worker.on("message", (ends: [id: string, result: number][]) => {
    for (const [id, result] of ends) {
      write([id, JSON.stringify(result), true]);
    }
  });
  await serve({
    submit: (input) =>
      new Promise((resolve) => {
        const id = randomUUID();
        submitted.set(id, resolve);
        write([id, JSON.stringify(input), false]);
      }),
    wait: (id, waitMs) => results.wait(id, waitMs),
    async close() {
      worker.kill();
      await storage.terminate();
    },
  });
}
