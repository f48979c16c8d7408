/** What was tried of packaging, by digests of what it is made of: packaging/checked.json. */
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./program.ts";
import { run } from "./run.ts";

const RECORD = join(ROOT, "packaging/checked.json");

export interface Inputs {
  /** Files, and folders with all that git knows in them. */
  readonly files: readonly string[];
  /** What else it depends on. Default: nothing. */
  texts?(): readonly string[];
}

/** The SHA-256 of the names and contents of files as they are in the folder, committed or not. */
export function digestOf({ files, texts = () => [] }: Inputs): string {
  const listed = run("git", ["ls-files", "-z", "-co", "--exclude-standard", "--", ...files], {
    cwd: ROOT,
  });
  const hash = createHash("sha256");
  for (const name of listed.split("\0").filter(Boolean).sort()) {
    hash
      .update(`${name}\0`)
      .update(readFileSync(join(ROOT, name)))
      .update("\0");
  }
  for (const text of texts()) {
    hash.update(`${text}\0`);
  }
  return hash.digest("hex");
}

/** The digest of each part when it was tried. */
export function readRecord(): Readonly<Record<string, string>> {
  return JSON.parse(readFileSync(RECORD, "utf8")) as Record<string, string>;
}

/** Notes that a part passed with this digest. */
export function writeRecord(name: string, digest: string): void {
  const record = { ...readRecord(), [name]: digest };
  const sorted = Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(RECORD, `${JSON.stringify(sorted, null, 2)}\n`);
}
