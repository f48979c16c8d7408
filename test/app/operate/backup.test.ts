import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Header } from "tar";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { BackupAbout, BackupEntryName } from "../../../src/app/operate/backup/format.ts";
import { BackupReader } from "../../../src/app/operate/backup/reader.ts";
import { restoreBackup } from "../../../src/app/operate/backup/restore.ts";
import { BackupSeal } from "../../../src/app/operate/backup/seal.ts";
import {
  type BackupProgress,
  type BackupTaken,
  takeBackup,
} from "../../../src/app/operate/backup/take.ts";
import { verifyBackup } from "../../../src/app/operate/backup/verify.ts";
import { BackupWriter } from "../../../src/app/operate/backup/writer.ts";
import { openAdministration } from "../../../src/app/operate/open.ts";
import { startPlatform } from "../../../src/app/start.ts";
import { readBackupConfig, readDataConfig, readStartConfig } from "../../../src/config/start.ts";
import { SqliteStorage } from "../../../src/storage/sqlite/storage.ts";
import { key, newTask } from "../../storage/fixtures.ts";

const PASSPHRASE = "correct horse battery";
const BLOB = { blobId: "0".repeat(32), bytes: Buffer.alloc(300_000, 7) };
const NOW_MS = Date.parse("2026-11-23T12:00:00Z");

const root = mkdtempSync(join(tmpdir(), "tessera-backup-"));
const origin = join(root, "origin");
const backup = join(root, "backup.tar");
let taken: BackupTaken;
let made = 0;
/** An empty place, for a copy or a platform. */
let place: string;

/** A platform with one task, whose argument is a file. */
async function makePlatform(folder: string): Promise<void> {
  const { config, secrets } = readDataConfig({ data: folder }, {});
  await using administration = await openAdministration(config, secrets, { create: true });
  await administration.setUp({ organization: "acme", email: "ada@example.com" });
  mkdirSync(join(folder, "blobs"));
  writeFileSync(join(folder, "blobs", BLOB.blobId), BLOB.bytes);
  await using storage = new SqliteStorage(secrets.database, { ownsQueue: false });
  await storage.start();
  const sha256 = createHash("sha256").update(BLOB.bytes).digest("base64url");
  const blob = { blobId: BLOB.blobId, size: BLOB.bytes.length, sha256 };
  await storage.registerBlobs({ blobIds: [blob.blobId], deleteAfterMs: NOW_MS });
  const files = [{ contentType: "image/png", blob }];
  await storage.submitTasks({ tasks: [newTask("a", { arguments: { json: "{}", files } })] });
}

function request(data: string, file: string, passphrase = PASSPHRASE) {
  const { config, secrets } = readBackupConfig({ data }, {});
  return { config, secrets, file, passphrase, now: () => NOW_MS, onProgress: () => {} };
}

const verify = (file: string, passphrase?: string) =>
  verifyBackup({ file, passphrase, onProgress: () => {} });

const restore = (file: string, passphrase?: string) =>
  restoreBackup(request(place, file, passphrase));

/** The backup with changed bytes. */
function changed(change: (bytes: Buffer) => Buffer): string {
  const path = `${place}.tar`;
  writeFileSync(path, change(readFileSync(backup)));
  return path;
}

/** The same bytes, with one of them flipped at the first place of `text`. */
function flippedAt(text: string, offset = 0): string {
  return changed((bytes) => {
    const at = bytes.indexOf(text) + offset;
    bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
    return bytes;
  });
}

/** A backup by somebody who knows the passphrase, or not, of whatever entries. */
async function forged(
  entries: readonly (readonly [name: BackupEntryName, bytes: Buffer])[],
  { about, passphrase = PASSPHRASE }: { about?: Partial<BackupAbout>; passphrase?: string } = {},
): Promise<string> {
  const path = `${place}.tar`;
  await using original = await BackupReader.open(backup);
  const seal = await BackupSeal.of(passphrase, original.about.salt);
  await using writer = await BackupWriter.create(path);
  await writer.addAbout({ ...original.about, ...about });
  for (const [name, bytes] of entries) {
    await writer.add(
      name,
      bytes.length,
      (async function* () {
        yield bytes;
      })(),
    );
  }
  await writer.finish((index) => seal.macOf(index));
  return path;
}

/** The backup with another name for its blob's entry. */
function renamed(path: string, type: "File" | "SymbolicLink" = "File"): string {
  return changed((bytes) => {
    const at = headerAt(bytes, BLOB.blobId);
    const header = new Header({
      path,
      type,
      linkpath: "/etc/passwd",
      size: BLOB.bytes.length,
      mode: 0o600,
      mtime: new Date(0),
    });
    header.encode(bytes, at);
    return bytes;
  });
}

function headerAt(bytes: Buffer, text: string): number {
  for (let at = 0; at < bytes.length; at += 512) {
    if (
      bytes.subarray(at, at + 512).includes("ustar") &&
      bytes.subarray(at, at + 512).includes(text)
    ) {
      return at;
    }
  }
  throw new Error(`nothing in the backup is called ${text}`);
}

const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

beforeAll(async () => {
  await makePlatform(origin);
  taken = await takeBackup(request(origin, backup));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));
beforeEach(() => {
  made += 1;
  place = join(root, `place-${made}`);
});

describe("a backup", () => {
  it("has the database and the blobs that it names, and tells so", async () => {
    expect(taken).toMatchObject({ files: 1, expiredFiles: 0, faultyFiles: 0, postgres: undefined });
    const verified = await verify(backup, PASSPHRASE);
    expect(verified).toMatchObject({
      about: { database: "sqlite", createdAt: "2026-11-23T12:00:00.000Z" },
      sizeBytes: statSync(backup).size,
      files: 1,
      keysOpened: true,
    });
  });

  it("shows neither keys nor passphrase", () => {
    const { digest } = JSON.parse(readFileSync(join(origin, "keys.json"), "utf8"));
    const bytes = readFileSync(backup);
    expect(bytes.includes(digest[0].key)).toBe(false);
    expect(bytes.includes(PASSPHRASE)).toBe(false);
  });

  it("is restored with the same keys, tasks and files", async () => {
    expect(await restore(backup)).toMatchObject({ files: 1, requeued: 0, keysWritten: true });
    expect(readFileSync(join(place, "keys.json"))).toEqual(readFileSync(join(origin, "keys.json")));
    expect(readFileSync(join(place, "blobs", BLOB.blobId))).toEqual(BLOB.bytes);
    await using storage = new SqliteStorage(join(place, "tessera.db"));
    await storage.start();
    expect(storage.warnings).toEqual([]);
    expect(await storage.getTask(key("a"))).toMatchObject({ status: "queued" });
    expect(statSync(join(place, "tessera.db")).mode & 0o777).toBe(0o600);
    expect(statSync(place).mode & 0o777).toBe(0o700);
  });

  it("writes no keys where the environment has them", async () => {
    const keys = readFileSync(join(origin, "keys.json"), "utf8");
    const { config, secrets } = readBackupConfig({ data: place }, { TESSERA_KEYS: keys });
    const restored = await restoreBackup({ ...request(place, backup), config, secrets });
    expect(restored.keysWritten).toBe(false);
    expect(existsSync(join(place, "keys.json"))).toBe(false);
  });

  it("leaves out what the platform itself has lost, and tells of it", async () => {
    await makePlatform(place);
    writeFileSync(join(place, "blobs", BLOB.blobId), Buffer.alloc(300_000, 8));
    const file = `${place}.tar`;
    const damaged = await takeBackup(request(place, file));
    expect(damaged).toMatchObject({ files: 0, faultyFiles: 1, faultyBlobIds: [BLOB.blobId] });
    rmSync(join(place, "blobs", BLOB.blobId));
    rmSync(file);
    expect(await takeBackup(request(place, file))).toMatchObject({ files: 0, faultyFiles: 1 });
    expect(await verify(file)).toMatchObject({ files: 0 });
  });

  it("leaves out files that expire while it is made, and is whole without them", async () => {
    await makePlatform(place);
    const file = `${place}.tar`;
    const expire = (): void => {
      const db = new DatabaseSync(join(place, "tessera.db"));
      db.exec("DELETE FROM blobs; DELETE FROM payload_parts; DELETE FROM tasks");
      db.close();
      rmSync(join(place, "blobs", BLOB.blobId), { force: true });
    };
    const onProgress: BackupProgress = ({ what }) => what === "database" && expire();
    const partial = await takeBackup({ ...request(place, file), onProgress });
    expect(partial).toMatchObject({ files: 0, expiredFiles: 1, faultyFiles: 0 });
    expect(await verify(file)).toMatchObject({ files: 0 });
  });

  it("does not overwrite a file, and leaves nothing when it fails", async () => {
    await expect(takeBackup(request(origin, backup))).rejects.toThrow("exists");
    await expect(takeBackup(request(place, `${place}.tar`))).rejects.toThrow("the platform's keys");
    const names = readdirSync(root);
    expect(names.filter((name) => /partial|\.db/.test(name))).toEqual([]);
    expect(existsSync(`${place}.tar`)).toBe(false);
  });
});

describe("a damaged backup", () => {
  it("is truncated wherever it was cut", async () => {
    const { size } = statSync(backup);
    for (const length of [600, 1_500, 20_000, size - 310_000, size - 1_024, size - 1]) {
      const cut = changed((bytes) => bytes.subarray(0, length));
      await expect(verify(cut), String(length)).rejects.toThrow("truncated");
    }
  });

  it("is told from another file", async () => {
    writeFileSync(`${place}.txt`, "no backup at all".repeat(100));
    await expect(verify(`${place}.txt`)).rejects.toThrow("not a backup");
    writeFileSync(`${place}.txt`, "");
    await expect(verify(`${place}.txt`)).rejects.toThrow("not a backup");
    await expect(verify(join(root, "nowhere.tar"))).rejects.toThrow("cannot be read");
  });

  it("is found by the digest of what was damaged", async () => {
    await expect(verify(flippedAt("SQLite format 3", 100))).rejects.toThrow(
      /database\/.* is damaged/,
    );
    const inBlob = changed((bytes) => {
      bytes.writeUInt8(8, headerAt(bytes, BLOB.blobId) + 512 + 299_999);
      return bytes;
    });
    await expect(verify(inBlob)).rejects.toThrow(/blobs\/0+\/.* is damaged/);
    await expect(verify(flippedAt('"created_at"', 20))).rejects.toThrow("lacks entries");
  });

  it("is found when an entry is missing, or something follows", async () => {
    const without = changed((bytes) => {
      const at = headerAt(bytes, BLOB.blobId);
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 512 + 300_032)]);
    });
    await expect(verify(without)).rejects.toThrow("lacks entries");
    const longer = changed((bytes) => Buffer.concat([bytes, Buffer.alloc(512)]));
    await expect(verify(longer)).rejects.toThrow("goes on after its end");
  });

  it("is not restored, and leaves nothing", async () => {
    const inBlob = changed((bytes) => {
      bytes.writeUInt8(8, headerAt(bytes, BLOB.blobId) + 512 + 299_999);
      return bytes;
    });
    await expect(restore(inBlob)).rejects.toThrow("is damaged");
    expect(existsSync(place)).toBe(false);
    mkdirSync(place);
    await expect(restore(inBlob)).rejects.toThrow("is damaged");
    expect(readdirSync(place)).toEqual([]);
  });
});

describe("a forged backup", () => {
  it.each(["../../evil", "/tmp/evil", "blobs/../../evil", `blobs/${"1".repeat(32)}`, "keys.json"])(
    "is known by a name that no backup has: %s",
    async (name) => {
      await expect(verify(renamed(name))).rejects.toThrow("no backup has");
    },
  );

  it("writes nothing outside of the data folder", async () => {
    await expect(restore(renamed("blobs/../../evil"))).rejects.toThrow("no backup has");
    expect(existsSync(place)).toBe(false);
    expect(readdirSync(root).filter((name) => name.includes("evil"))).toEqual([]);
  });

  it("has no links", async () => {
    const link = renamed(`blobs/${BLOB.blobId}/${sha256(BLOB.bytes)}`, "SymbolicLink");
    await expect(verify(link)).rejects.toThrow("no backup has");
  });

  it("is refused without the passphrase, whatever its digests say", async () => {
    const bytes = Buffer.from("another database");
    const database = { kind: "database", sha256: sha256(bytes) } as const;
    const path = await forged([[database, bytes]], { passphrase: "that of somebody else" });
    expect(await verify(path)).toMatchObject({ files: 0 });
    await expect(verify(path, PASSPHRASE)).rejects.toThrow("changed after it was made");
    await expect(restore(path)).rejects.toThrow("changed after it was made");
    expect(existsSync(place)).toBe(false);
  });

  it("has one database, and first", async () => {
    const bytes = Buffer.from("another database");
    const database = [{ kind: "database", sha256: sha256(bytes) }, bytes] as const;
    await expect(verify(await forged([database, database]))).rejects.toThrow("no backup has");
    rmSync(`${place}.tar`);
    await expect(verify(await forged([]))).rejects.toThrow("lacks entries");
  });

  it("asks for no more than the file has", async () => {
    const huge = changed((bytes) => {
      const at = headerAt(bytes, "database/");
      const header = new Header(bytes, at);
      header.size = 2 ** 50;
      header.encode(bytes, at);
      return bytes;
    });
    await expect(verify(huge)).rejects.toThrow("truncated");
    const long = changed((bytes) => {
      const header = new Header(bytes, 0);
      header.size = 100_000;
      header.encode(bytes, 0);
      return bytes;
    });
    await expect(verify(long)).rejects.toThrow("tessera-backup.json in the backup is damaged");
  });
});

describe("a restore", () => {
  it("says that the passphrase is another one, before anything is written", async () => {
    await expect(restore(backup, "another passphrase")).rejects.toThrow("the passphrase is not");
    expect(existsSync(place)).toBe(false);
  });

  it("refuses a data folder with anything in it", async () => {
    mkdirSync(place);
    writeFileSync(join(place, "tessera.json"), "{}");
    await expect(restore(backup)).rejects.toThrow(`${place} is not empty`);
  });

  it("refuses a database that is there already, or its log", async () => {
    for (const name of ["other.db", "other.db-wal"]) {
      writeFileSync(join(root, name), "");
      const { config, secrets } = readBackupConfig(
        { data: place, database: join(root, "other.db") },
        {},
      );
      const refused = restoreBackup({ ...request(place, backup), config, secrets });
      await expect(refused).rejects.toThrow(`${name} exists`);
      rmSync(join(root, name));
    }
  });

  it("that was killed keeps the platform from starting", async () => {
    mkdirSync(place, { mode: 0o700 });
    writeFileSync(join(place, "tessera.db.restoring"), "");
    const { config, secrets } = readStartConfig({ data: place, port: "0", logLevel: "silent" }, {});
    await expect(startPlatform(config, secrets)).rejects.toThrow("a restore into");
  });
});
