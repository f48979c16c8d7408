/** Opens a database in memory, and ends the thread that holds it. */
import { once } from "node:events";
import type { Worker } from "node:worker_threads";
import { SqliteStorage } from "../../../src/storage/sqlite/storage.ts";

const spawned = once(process, "worker");
const storage = new SqliteStorage(":memory:");
await storage.start();
const [thread] = await spawned;
await (thread as Worker).terminate();
// It would live on.
setInterval(() => {}, 60_000);
