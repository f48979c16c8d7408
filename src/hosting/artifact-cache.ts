/**
 * The artifacts that this node has on disk, each in a folder under its digest,
 * made of files from the blob store and shared by all deployments that run it.
 *
 *   <folder>/<digest>/          complete and verified; appears by a rename
 *   <folder>/<digest>.*.partial one that is being written, or never was finished
 *
 * A folder from before this process began is trusted only after every file in
 * it has been digested again: a machine that lost its power may have kept
 * names and lost content. What nobody holds is removed by the next sweep, so
 * that going back to the revision before finds it still there for a while.
 */
import { createReadStream, realpathSync } from "node:fs";
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import {
  type ArtifactIndex,
  digestOf,
  ENTRY_NAME,
  INDEX_NAME,
  verifyIndex,
} from "../artifacts/index-file.ts";
import { assembleArtifact } from "../artifacts/unpack.ts";
import { verified } from "../artifacts/verified.ts";
import type { Log } from "../log/log.ts";
import type { BlobStore } from "../storage/blobs.ts";
import type { HostingStorage } from "../storage/hosting/hosting.ts";
import { takeLock } from "../storage/lock-file.ts";

/** Nodes on one machine that share a data folder. */
const MAX_NODES = 32;

const DIGEST = /^[0-9a-f]{64}$/;

/** An artifact on disk that stays there until it is released. */
export interface HeldArtifact {
  readonly index: ArtifactIndex;
  readonly digest: string;
  /** Of the service's module. */
  readonly servicePath: string;
  /** Again is harmless. */
  release(): void;
}

export interface ArtifactCacheOptions {
  /** Made if it is not there; one of several nodes that share it takes another beside it. */
  readonly folder: string;
  readonly hosting: Pick<HostingStorage, "getIndex" | "listArtifactFiles">;
  readonly blobs: Pick<BlobStore, "read">;
  readonly log: Log;
}

interface Unpacked {
  readonly index: ArtifactIndex;
  readonly folder: string;
}

export class ArtifactCache implements AsyncDisposable {
  readonly #options: ArtifactCacheOptions;
  #folder = "";
  #unlock: (() => void) | undefined;
  readonly #unpacked = new Map<string, Promise<Unpacked>>();
  /** How many hold each. */
  readonly #holders = new Map<string, number>();
  #sweeping: Promise<void> = Promise.resolve();

  constructor(options: ArtifactCacheOptions) {
    this.#options = options;
  }

  /** The folder that this node has for itself, once it is started. */
  get folder(): string {
    return this.#folder;
  }

  /** Finds a folder of its own, and removes what was never finished in it. */
  async start(): Promise<void> {
    const { folder } = this.#options;
    for (let count = 1; count <= MAX_NODES && this.#unlock === undefined; count += 1) {
      const own = count === 1 ? folder : `${folder}-${count}`;
      await mkdir(own, { recursive: true, mode: 0o700 });
      // Workers are allowed real paths.
      this.#folder = realpathSync(own);
      this.#unlock = takeLock(join(own, "lock"));
    }
    if (this.#unlock === undefined) {
      throw new Error(`${MAX_NODES} nodes use ${folder} already: give this one its own --data`);
    }
    for (const name of await readdir(this.#folder)) {
      if (name.endsWith(".partial")) {
        await rm(join(this.#folder, name), { recursive: true, force: true });
      }
    }
  }

  /**
   * An artifact, unpacked now if it is not there. Rejects with
   * STORAGE_UNAVAILABLE, with an `ArtifactError` when its files are not what
   * its index says, and with a message when nobody has it any more.
   */
  async hold(organizationId: string, digest: string): Promise<HeldArtifact> {
    this.#holders.set(digest, (this.#holders.get(digest) ?? 0) + 1);
    let isHeld = true;
    const release = (): void => {
      if (isHeld) {
        isHeld = false;
        this.#holders.set(digest, (this.#holders.get(digest) ?? 1) - 1);
      }
    };
    try {
      await this.#sweeping;
      const { index, folder } = await this.#unpack(organizationId, digest);
      return { index, digest, servicePath: join(folder, ENTRY_NAME), release };
    } catch (err) {
      release();
      throw err;
    }
  }

  /** Removes the folders that nobody holds; resolves with how many. */
  async sweep(): Promise<number> {
    await this.#sweeping;
    const unused = (await readdir(this.#folder)).filter(
      (name) => DIGEST.test(name) && !this.#holders.get(name),
    );
    const removing = (async () => {
      for (const digest of unused) {
        this.#unpacked.delete(digest);
        await rm(join(this.#folder, digest), { recursive: true, force: true });
      }
    })();
    // Whoever asks for one of them meanwhile waits, and then unpacks it anew.
    this.#sweeping = removing.catch(() => undefined);
    await removing;
    return unused.length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sweeping;
    await Promise.allSettled(this.#unpacked.values());
    this.#unlock?.();
  }

  #unpack(organizationId: string, digest: string): Promise<Unpacked> {
    const known = this.#unpacked.get(digest);
    if (known !== undefined) {
      return known;
    }
    const unpacking = this.#find(digest).then(
      (found) => found ?? this.#fetch(organizationId, digest),
    );
    this.#unpacked.set(digest, unpacking);
    unpacking.catch(() => {
      if (this.#unpacked.get(digest) === unpacking) {
        this.#unpacked.delete(digest);
      }
    });
    return unpacking;
  }

  /** One from an earlier life of this node, when it is whole; else it is removed. */
  async #find(digest: string): Promise<Unpacked | undefined> {
    const folder = join(this.#folder, digest);
    let text: string;
    try {
      text = await readFile(join(folder, INDEX_NAME), "utf8");
    } catch {
      await rm(folder, { recursive: true, force: true });
      return undefined;
    }
    try {
      if (digestOf(text) !== digest) {
        throw new Error(`its ${INDEX_NAME} is another one`);
      }
      const index = verifyIndex(text);
      for (const file of index.files) {
        for await (const _ of verified(createReadStream(join(folder, file.path)), file)) {
          // Only its digest is wanted.
        }
      }
      return { index, folder };
    } catch (err) {
      this.#options.log.warn(
        { err, digest },
        "an unpacked artifact is damaged: it is fetched again",
      );
      await rm(folder, { recursive: true, force: true });
      return undefined;
    }
  }

  async #fetch(organizationId: string, digest: string): Promise<Unpacked> {
    const { hosting, blobs } = this.#options;
    const text = await hosting.getIndex({ organizationId, digest });
    if (text === undefined || digestOf(text) !== digest) {
      throw new Error(`there is no artifact ${digest} any more`);
    }
    const files = await hosting.listArtifactFiles({ organizationId, digest });
    const blobIds = new Map(files.map(({ sha256, blobId }) => [sha256, blobId]));
    const folder = join(this.#folder, digest);
    const index = await assembleArtifact(
      text,
      ({ sha256, size }) => {
        const blobId = blobIds.get(sha256);
        if (blobId === undefined) {
          throw new Error(`the file ${sha256} of artifact ${digest} is not in the blob store`);
        }
        return blobs.read(blobId, { start: 0, end: size });
      },
      folder,
    );
    return { index, folder };
  }
}
