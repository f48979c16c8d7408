/**
 * Fixtures of released schemas: what a version of the program has stored, and what it said of
 * it. Each is one file of compressed JSON in this folder, made by `make.ts`.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";

/** What the program answered about what it stored. */
export interface Stored {
  /** By kind: `succeeded`, `failed`, `long`, `file`, `queued`, `cancelled`. */
  readonly tasks: {
    readonly [kind: string]: {
      readonly taskId: string;
      readonly endpoint: string;
      readonly status: string;
      /** In base64; of tasks that succeeded. */
      readonly result?: string;
    };
  };
  /** The text of `keys.json`. Undefined, as the rest, for a service that was served alone. */
  readonly keys?: string;
  readonly tokens?: {
    readonly [name in "personal" | "organization"]: {
      readonly tokenId: string;
      readonly value: string;
    };
  };
  readonly account?: { readonly email: string; readonly password: string };
  readonly secret?: { readonly name: string; readonly value: string };
}

export interface Fixture {
  readonly stored: Stored;
  readonly madeAtMs: number;
  /** Files of the blob store in base64, by their paths. */
  readonly blobs: { readonly [path: string]: string };
  /** Statements that make the database. */
  readonly database: string;
}

const ENDING = ".json.gz";
const FOLDER = fileURLToPath(new URL("./", import.meta.url));

/** The names of all fixtures of a database: its name, and the version of the schema. */
export function fixtureNames(database: "sqlite" | "postgres"): string[] {
  return readdirSync(FOLDER)
    .filter((name) => name.startsWith(`${database}-`) && name.endsWith(ENDING))
    .map((name) => name.slice(0, -ENDING.length))
    .sort();
}

export function readFixture(name: string): Fixture {
  return JSON.parse(gunzipSync(readFileSync(join(FOLDER, name + ENDING))).toString());
}

export function writeFixture(name: string, fixture: Fixture): void {
  writeFileSync(join(FOLDER, name + ENDING), gzipSync(JSON.stringify(fixture), { level: 9 }));
}

/** The files below a folder in base64, by their paths. */
export function filesBelow(folder: string): Record<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  return Object.fromEntries(
    files.map((path) => [path.slice(folder.length + 1), readFileSync(path).toString("base64")]),
  );
}
