/**
 * The keys file, as JSON:
 *
 *     {
 *       "digest": [{ "id": "k4Fq2a9Z", "key": "<32 bytes in base64>", "created": "2026-…" }],
 *       "seal":   [{ "id": "…",        "key": "…",                    "created": "…" }]
 *     }
 *
 * The first of each kind is the current one. The file is readable by its owner
 * alone and is created and changed atomically.
 */
import { randomBytes } from "node:crypto";
import {
  chownSync,
  closeSync,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { randomBase62 } from "./random.ts";

const KEY_BYTES = 32;

/** Keys of each kind: each one adds a digest to every lookup of a token. */
const MAX_PLATFORM_KEYS = 32;

const ID = /^[0-9A-Za-z_-]{1,32}$/;

interface KeyEntry {
  readonly id: string;
  readonly key: Buffer;
  readonly created: string;
}

/** The keys of each kind, the current one first. */
export interface KeyList {
  readonly digest: readonly KeyEntry[];
  readonly seal: readonly KeyEntry[];
}

/**
 * Creates the file with new keys if it does not exist. When two processes try
 * at once, both use the keys of the winner.
 */
export function createKeysFile(path: string, now = new Date()): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const unique = `${path}.${randomBase62(8)}.new`;
  if (isThere(path)) {
    return;
  }
  writeWhole(unique, format({ digest: [newKey(now)], seal: [newKey(now)] }));
  try {
    linkSync(unique, path);
  } catch (err) {
    if (codeOf(err) !== "EEXIST") {
      throw err;
    }
  } finally {
    unlinkSync(unique);
  }
}

/** Creates the file with the keys of a text, such as from a backup. Throws when there is one. */
export function writeKeysFile(path: string, text: string, source: string): void {
  const { digest, seal } = parseKeys(text, source);
  writeWhole(path, format({ digest, seal }));
}

/**
 * Reads the keys file as text, after checking it. Throws as `readKeysFile` does.
 */
export function readKeysText(path: string): string {
  const { digest, seal } = readKeysFile(path);
  return format({ digest, seal });
}

/**
 * Reads the keys file. Throws an Error with a message for the operator when it
 * is missing, broken or not private.
 */
export function readKeysFile(path: string): KeyList {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (err) {
    if (codeOf(err) === "ENOENT") {
      throw new Error(
        `the platform's keys are not at ${path}: without them no token can be verified; restore the file from a backup, or copy it from another node`,
      );
    }
    throw err;
  }
  try {
    const mode = fstatSync(file).mode & 0o777;
    if ((mode & 0o077) !== 0 && process.platform !== "win32") {
      throw new Error(
        `other users may read the platform's keys (mode ${mode.toString(8)}): chmod 600 ${path}`,
      );
    }
    return parseKeys(readFileSync(file, "utf8"), path);
  } finally {
    closeSync(file);
  }
}

/**
 * Rotates the keys: adds a new current key of each kind to the file and keeps
 * the others. Nodes use the old keys until they read the file again.
 */
export function rotateKeys(path: string, now = new Date()): void {
  const text = withNewKeys(readKeysFile(path), { source: path, now });
  const next = `${path}.new`;
  try {
    writeWhole(next, text);
  } catch (err) {
    throw codeOf(err) === "EEXIST"
      ? new Error(`another rotation of the keys is under way, or broke off: if not, remove ${next}`)
      : err;
  }
  // Run by root, this keeps the file's owner: the user who runs the node.
  const { uid, gid } = statSync(path);
  chownSync(next, uid, gid);
  renameSync(next, path);
}

/**
 * Rotates keys given as text, in two steps, each on one line: `prepared` adds
 * the new keys, and every node has to know it before any node uses them;
 * `rotated` makes them the current ones.
 */
export function rotatedKeys(
  text: string,
  source: string,
  now = new Date(),
): { readonly prepared: string; readonly rotated: string } {
  const rotated = JSON.parse(withNewKeys(parseKeys(text, source), { source, now }));
  const behind = ([added, current, ...others]: readonly unknown[]) => [current, added, ...others];
  const prepared = { digest: behind(rotated.digest), seal: behind(rotated.seal) };
  return { prepared: JSON.stringify(prepared), rotated: JSON.stringify(rotated) };
}

function withNewKeys(
  { digest, seal }: KeyList,
  { source, now }: { readonly source: string; readonly now: Date },
): string {
  if (Math.max(digest.length, seal.length) >= MAX_PLATFORM_KEYS) {
    throw new Error(
      `${source} has ${MAX_PLATFORM_KEYS} keys of a kind, which is the most: take out some that are no longer used`,
    );
  }
  return format({ digest: [newKey(now), ...digest], seal: [newKey(now), ...seal] });
}

/** Parses keys; errors name `source` and never quote the text. */
export function parseKeys(text: string, source: string): KeyList {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(`${source} is not JSON: it must hold the platform's keys`);
  }
  const { digest, seal } = Object(value) as Record<string, unknown>;
  return { digest: parseList(digest, "digest", source), seal: parseList(seal, "seal", source) };
}

function parseList(value: unknown, name: string, source: string): readonly KeyEntry[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_PLATFORM_KEYS) {
    throw new Error(`${source}: "${name}" must be a list of 1 to ${MAX_PLATFORM_KEYS} keys`);
  }
  const keys = value.map((each: unknown, index): KeyEntry => {
    const { id, key, created } = Object(each) as Record<string, unknown>;
    const bytes = Buffer.from(typeof key === "string" ? key : "", "base64");
    if (typeof id !== "string" || !ID.test(id) || bytes.length !== KEY_BYTES) {
      throw new Error(
        `${source}: "${name}", number ${index + 1}, must have an "id" of letters and digits and a "key" of ${KEY_BYTES} bytes in base64`,
      );
    }
    return { id, key: bytes, created: typeof created === "string" ? created : "" };
  });
  if (new Set(keys.map(({ id }) => id)).size < keys.length) {
    throw new Error(`${source}: "${name}" has two keys with the same id`);
  }
  return keys;
}

function newKey(now: Date): KeyEntry {
  return { id: randomBase62(8), key: randomBytes(KEY_BYTES), created: now.toISOString() };
}

function format(keys: KeyList): string {
  const plain = (list: readonly KeyEntry[]) =>
    list.map(({ id, key, created }) => ({ id, key: key.toString("base64"), created }));
  return `${JSON.stringify({ digest: plain(keys.digest), seal: plain(keys.seal) }, null, 2)}\n`;
}

/** Creates a new file and syncs it to disk. Throws when it exists. */
function writeWhole(path: string, text: string): void {
  const file = openSync(path, "wx", 0o600);
  try {
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function isThere(path: string): boolean {
  try {
    closeSync(openSync(path, "r"));
    return true;
  } catch (err) {
    return codeOf(err) !== "ENOENT";
  }
}

function codeOf(err: unknown): string | undefined {
  return (err as NodeJS.ErrnoException).code;
}
