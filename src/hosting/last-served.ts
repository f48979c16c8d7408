/**
 * Last served revisions: records on disk which revision of each deployment this
 * node served last. That revision is known to start, so a restarted node serves it
 * at once, even if the target revision turns out to be broken.
 */
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

export interface ServedRevision {
  readonly revision: number;
  /** The digest of its artifact. */
  readonly digest: string;
}

export class LastServed {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async get(deploymentId: string): Promise<ServedRevision | undefined> {
    try {
      const { revision, digest } = JSON.parse(await readFile(this.#path(deploymentId), "utf8"));
      const isOne = Number.isSafeInteger(revision) && /^[0-9a-f]{64}$/.test(digest);
      return isOne ? { revision, digest } : undefined;
    } catch {
      // No file, or an incomplete one: the node begins as a new one does.
      return undefined;
    }
  }

  async set(deploymentId: string, { revision, digest }: ServedRevision): Promise<void> {
    const before = await this.get(deploymentId);
    if (before?.revision === revision && before.digest === digest) {
      return;
    }
    const path = this.#path(deploymentId);
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await writeFile(`${path}.part`, JSON.stringify({ revision, digest }), { mode: 0o600 });
    await rename(`${path}.part`, path);
  }

  async delete(deploymentId: string): Promise<void> {
    await rm(this.#path(deploymentId), { force: true });
  }

  /** Deletes the records of all other deployments. */
  async keepOnly(deploymentIds: ReadonlySet<string>): Promise<void> {
    const names = await readdir(this.#folder).catch(() => []);
    for (const name of names) {
      if (!deploymentIds.has(name.replace(/\.json$/, ""))) {
        await rm(join(this.#folder, name), { force: true });
      }
    }
  }

  #path(deploymentId: string): string {
    return join(this.#folder, `${deploymentId}.json`);
  }
}
