/**
 * `node scripts/migrations.ts`: writes the digests of new migrations to
 * `test/storage/migrations.json`, by which `npm test` sees when one changes after its commit.
 * Refuses where one that is there has changed: databases were made with it.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { digestOf, type Migration } from "../src/storage/migration.ts";
import { MIGRATIONS as POSTGRES } from "../src/storage/postgres/schema.ts";
import { MIGRATIONS as SQLITE } from "../src/storage/sqlite/schema.ts";

const path = fileURLToPath(new URL("../test/storage/migrations.json", import.meta.url));

type Recorded = Readonly<Record<"sqlite" | "postgres", readonly string[]>>;

const recorded = JSON.parse(readFileSync(path, "utf8")) as Recorded;
const changed: string[] = [];

/** One line for each migration: its digest and its name. */
function record(database: "sqlite" | "postgres", migrations: readonly Migration[]): string[] {
  const lines = migrations.map(({ name, sql }) => `${digestOf(sql)} ${name}`);
  for (const [index, line] of recorded[database].entries()) {
    if (line !== lines[index]) {
      changed.push(`${database} ${index + 1} (${line.slice(line.indexOf(" ") + 1)})`);
    }
  }
  return lines;
}

const lines = { sqlite: record("sqlite", SQLITE), postgres: record("postgres", POSTGRES) };
if (changed.length > 0) {
  console.error(
    `migrations: changed after they were recorded: ${changed.join(", ")}. Put them back and add another migration. One that was never on the main branch may be recorded again: remove its line from test/storage/migrations.json first.`,
  );
  process.exitCode = 1;
} else {
  writeFileSync(path, `${JSON.stringify(lines, null, 2)}\n`);
}
