/** The Postgres schema: `schema.sql` makes it, and forward-only migrations change it. */
import { readFileSync } from "node:fs";
import { expand, type Migration } from "../migration.ts";

export { STATUS } from "../stored.ts";

/**
 * The migrations, in their order. A released one never changes: digests of all of them are in
 * `test/storage/migrations.json`. CONTRIBUTING.md says how one is added.
 */
export const MIGRATIONS: readonly Migration[] = [
  expand("the schema of 0.1.0", readFileSync(new URL("./schema.sql", import.meta.url), "utf8")),
];
