/** A folder that one process has for itself, where several may share a data folder. */
import { realpathSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { takeLock } from "./lock-file.ts";

/** Nodes on one machine that share a data folder. */
const MAX_NODES_PER_FOLDER = 32;

export interface OwnFolder extends Disposable {
  /** Its real path: the permission model of workers compares those. */
  readonly path: string;
}

/**
 * Locks the folder until it is disposed, or one beside it if another process uses it.
 * Rejects when there are too many.
 */
export async function takeFolder(folder: string): Promise<OwnFolder> {
  for (let count = 1; count <= MAX_NODES_PER_FOLDER; count += 1) {
    const own = count === 1 ? folder : `${folder}-${count}`;
    await mkdir(own, { recursive: true, mode: 0o700 });
    const path = realpathSync(own);
    const unlock = takeLock(join(path, "lock"));
    if (unlock !== undefined) {
      return { path, [Symbol.dispose]: unlock };
    }
  }
  throw new Error(
    `${MAX_NODES_PER_FOLDER} nodes use ${folder} already: give this one its own --data`,
  );
}
