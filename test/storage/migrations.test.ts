import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { checkSchema, contract, digestOf, expand, numbered } from "../../src/storage/migration.ts";
import { MIGRATIONS as POSTGRES } from "../../src/storage/postgres/schema.ts";
import { MIGRATIONS as SQLITE } from "../../src/storage/sqlite/schema.ts";

const recorded = JSON.parse(
  readFileSync(new URL("./migrations.json", import.meta.url), "utf8"),
) as Record<string, string[]>;

describe.each([
  ["sqlite", SQLITE],
  ["postgres", POSTGRES],
])("the migrations of %s", (database, migrations) => {
  it("are those that were recorded: databases were made with them", () => {
    const now = migrations.map(({ name, sql }) => `${digestOf(sql)} ${name}`);
    expect(
      now,
      "a recorded migration never changes: add another one; then run node scripts/migrations.ts",
    ).toEqual(recorded[database]);
  });

  it("lead to a schema that this program can use", () => {
    for (const { usableFrom } of numbered(migrations)) {
      expect(usableFrom).toBeLessThanOrEqual(migrations.length);
    }
  });
});

describe("a program and a later schema", () => {
  const own = [expand("one", "CREATE 1"), expand("two", "CREATE 2")];
  const state = (migrations: typeof own) => ({
    version: migrations.length,
    applied: numbered(migrations),
  });

  it("go together while the schema was only expanded", () => {
    checkSchema(state([...own, expand("three", "CREATE 3")]), own);
  });

  it("go together when what was removed was not needed any more", () => {
    checkSchema(state([...own, contract("three", 2, "DROP 1")]), own);
  });

  it("do not go together when something was removed that the program needs", () => {
    const later = [...own, expand("three", "CREATE 3"), contract("four", 3, "DROP 2")];
    const message =
      "its schema has version 4 and needs a program that knows 3, this program knows versions up to 2: run a newer version of tessera";
    expect(() => checkSchema(state(later), own)).toThrow(message);
    expect(() => checkSchema(state([...later, expand("five", "CREATE 5")]), own)).toThrow(
      "its schema has version 5 and needs a program that knows 3",
    );
  });

  it("do not go together when a migration was another one", () => {
    const other = [expand("one", "CREATE 1"), expand("deux", "CREATE II")];
    expect(() => checkSchema(state(other), own)).toThrow(
      "migration 2 (deux) of its schema was another one than this program's",
    );
  });
});
