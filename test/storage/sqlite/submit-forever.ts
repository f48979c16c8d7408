/**
 * Submits tasks to the database that its argument names until it is killed,
 * many at once, and writes the id of each one that was acknowledged.
 */
import { SqliteStorage } from "../../../src/storage/sqlite/storage.ts";
import { createIdSource } from "../../../src/tasks/id.ts";
import { newTask } from "../fixtures.ts";

const AT_ONCE = 16;

const storage = new SqliteStorage(process.argv[2] ?? "");
await storage.start();
const newId = createIdSource();

async function submitForever(): Promise<never> {
  for (;;) {
    const taskId = newId();
    const task = newTask(taskId, { queueLimit: Number.MAX_SAFE_INTEGER });
    await storage.submitTasks({ tasks: [task] });
    process.stdout.write(`${taskId}\n`);
  }
}

await Promise.all(Array.from({ length: AT_ONCE }, submitForever));
