/**
 * A base backup by the low-level API of Postgres, as
 * https://www.postgresql.org/docs/current/continuous-archiving.html describes it: the packages of
 * the tests bring no pg_basebackup.
 */
import { chown, copyFile, mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";

/** What belongs to the running server, or is streamed from it later. */
const LEFT_OUT = new Set(["postmaster.pid", "postmaster.opts", "standby.signal", "backup_label"]);
const EMPTIED = new Set(["pg_wal", "pg_replslot", "pg_stat_tmp", "pg_notify", "pg_subtrans"]);

export interface CopyOptions {
  readonly from: string;
  /** Must not exist. */
  readonly to: string;
  /** Whom the copy belongs to; default: this process's user. */
  readonly uid?: number;
  readonly gid?: number;
}

/** Copies the data of a server that runs; `url` leads to it. */
export async function copyData(url: string, options: CopyOptions): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query("SELECT pg_backup_start('copy', true)");
    await copyFolder(options.from, options.to, options);
    const wal = join(options.to, "pg_wal", "archive_status");
    await mkdir(wal);
    await own(wal, options);
    const { rows } = await client.query("SELECT labelfile FROM pg_backup_stop(false)");
    await writeFile(join(options.to, "backup_label"), String(rows[0]?.labelfile));
    await own(join(options.to, "backup_label"), options);
  } finally {
    await client.end();
  }
}

async function copyFolder(from: string, to: string, options: CopyOptions): Promise<void> {
  await mkdir(to, { mode: 0o700 });
  await own(to, options);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) {
      if (EMPTIED.has(entry.name)) {
        await mkdir(target, { mode: 0o700 });
        await own(target, options);
      } else {
        await copyFolder(source, target, options);
      }
    } else if (entry.isFile() && !LEFT_OUT.has(entry.name)) {
      await copyLive(source, target, options);
    }
  }
}

/** Files may go while they are copied; the log of the server tells the copy so. */
async function copyLive(source: string, target: string, options: CopyOptions): Promise<void> {
  try {
    await copyFile(source, target);
    await own(target, options);
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code !== "ENOENT") {
      throw err;
    }
  }
}

async function own(path: string, { uid, gid }: CopyOptions): Promise<void> {
  if (uid !== undefined && gid !== undefined) {
    await chown(path, uid, gid);
  }
}
