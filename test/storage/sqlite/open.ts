/** Opens the database that its argument names, and writes how that went. */
import { SqliteStorage } from "../../../src/storage/sqlite/storage.ts";

const storage = new SqliteStorage(process.argv[2] ?? "");
try {
  await storage.start();
  process.stdout.write("opened\n");
} catch (err) {
  process.stdout.write(`${err instanceof Error ? err.message : err}\n`);
} finally {
  await storage[Symbol.asyncDispose]();
}
