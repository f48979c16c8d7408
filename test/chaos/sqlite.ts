/** One node on a SQLite file. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { ChaosDatabase } from "./run.ts";

export function sqliteDatabase(): ChaosDatabase {
  const folder = mkdtempSync(join(tmpdir(), "tessera-chaos-"));
  const path = join(folder, "tasks.db");
  return {
    name: "SQLite",
    urls: [path],
    async check(acknowledged) {
      const db = new DatabaseSync(path);
      try {
        const found: string[] = [];
        const integrity = db.prepare("PRAGMA integrity_check").all();
        if (JSON.stringify(integrity) !== '[{"integrity_check":"ok"}]') {
          found.push(`integrity_check: ${JSON.stringify(integrity)}`);
        }
        const stored = Number(db.prepare("SELECT count(*) AS n FROM tasks").get()?.n);
        if (stored !== acknowledged) {
          found.push(`${stored} tasks are stored, ${acknowledged} were acknowledged`);
        }
        const counts = db.prepare("SELECT * FROM queue_counts WHERE queued <> 0 OR running <> 0");
        const wrong = counts.all();
        if (wrong.length > 0) {
          found.push(`nothing waits or runs, and the counters say ${JSON.stringify(wrong)}`);
        }
        return found;
      } finally {
        db.close();
      }
    },
    async [Symbol.asyncDispose]() {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
