/**
 * The node's on-disk cache of unpacked artifacts. Each is a folder named by its
 * digest, assembled from files of the blob store and shared by all deployments
 * that run it.
 *
 *   <folder>/<digest>/          complete and verified; appears by an atomic rename
 *   <folder>/<digest>.*.partial being written, or left unfinished
 *
 * A folder from before this process started is trusted only after every file in it
 * was digested again: after a power failure a machine may have kept names and lost
 * content. That happens when the first worker reads the code, so that deployments
 * that sleep cost a start nothing but their index. A sweep removes artifacts without
 * holders, so going back to the previous revision finds its artifact for a while.
 *
 * A large file that two artifacts of an organization have exists once: the later one has a hard
 * link to it. It is digested through the link, whatever was verified of the earlier one.
 */

import { createReadStream } from "node:fs";
import { link, open, readdir, readFile, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import {
  type ArtifactIndex,
  digestOf,
  INDEX_NAME,
  type IndexedFile,
  unpackedFiles,
  verifyIndex,
} from "../artifacts/index-file.ts";
import { type PlacedFile, placed } from "../artifacts/parts.ts";
import { assembleArtifact, type LinkFile, type OpenFile } from "../artifacts/unpack.ts";
import { verified } from "../artifacts/verified.ts";
import type { Log } from "../log/log.ts";
import type { BlobStore } from "../storage/blobs.ts";
import type { HostingStorage } from "../storage/hosting/hosting.ts";
import { type OwnFolder, takeFolder } from "../storage/own-folder.ts";
import { Semaphore } from "../time/semaphore.ts";

/**
 * Artifacts that are read or fetched at a time: a node that starts reads those of all its
 * deployments, and each takes buffers.
 */
const MAX_UNPACKING_ARTIFACTS = 8;

/** Bytes that are read of an unpacked file at a time, to verify it. */
const VERIFIED_CHUNK_BYTES = 256 * 1024;

/** Files that are linked, rather than fetched again; links to many small ones gain little. */
const MIN_LINKED_FILE_BYTES = 1024 ** 2;

const DIGEST = /^[0-9a-f]{64}$/;

/** An artifact on disk that stays there until it is released. */
export interface HeldArtifact {
  readonly index: ArtifactIndex;
  readonly digest: string;
  /** The path of the service's module. */
  readonly servicePath: string;
  /**
   * Reads the service's module, after the files of the artifact were verified once. Rejects when
   * they were damaged: by then they are fetched again, and what is started next finds them whole.
   */
  readCode(): Promise<string>;
  /** The verified content of a file; packages are not unpacked, and come from the blob store. */
  openFile(file: IndexedFile): AsyncIterable<Uint8Array>;
  /** Releases the artifact; a second call does nothing. */
  release(): void;
}

interface ArtifactCacheOptions {
  /** Created if missing. If another node uses it, this one uses a folder beside it. */
  readonly folder: string;
  readonly hosting: Pick<HostingStorage, "getIndex" | "listArtifactFiles">;
  readonly blobs: Pick<BlobStore, "read">;
  readonly log: Log;
}

interface ArtifactKey {
  readonly organizationId: string;
  readonly digest: string;
}

interface Unpacked {
  /** Of the organization that asked for it first. */
  readonly organizationId: string;
  readonly index: ArtifactIndex;
  readonly folder: string;
  /** Resolves when all files are verified; undefined until somebody asks. */
  verified: Promise<void> | undefined;
}

export class ArtifactCache implements AsyncDisposable {
  readonly #options: ArtifactCacheOptions;
  #folder = "";
  #own: OwnFolder | undefined;
  readonly #unpacked = new Map<string, Promise<Unpacked>>();
  /** Those of them that are there. */
  readonly #ready = new Map<string, Unpacked>();
  /** The number of holders of each artifact. */
  readonly #holders = new Map<string, number>();
  readonly #unpacking = new Semaphore(MAX_UNPACKING_ARTIFACTS);
  #sweeping: Promise<void> = Promise.resolve();
  /** Memory for files that are verified, used again: at most one for each artifact at a time. */
  readonly #buffers: Buffer[] = [];

  constructor(options: ArtifactCacheOptions) {
    this.#options = options;
  }

  /** This node's own folder; set by `start`. */
  get folder(): string {
    return this.#folder;
  }

  /** Locks a folder for this node, and removes unfinished artifacts from it. */
  async start(): Promise<void> {
    this.#own = await takeFolder(this.#options.folder);
    this.#folder = this.#own.path;
    for (const name of await readdir(this.#folder)) {
      if (name.endsWith(".partial")) {
        await rm(join(this.#folder, name), { recursive: true, force: true });
      }
    }
  }

  /**
   * Holds an artifact, which is unpacked first if it is not cached. Rejects with
   * STORAGE_UNAVAILABLE, with an `ArtifactError` when its files do not match its
   * index, and with a plain error when it was deleted.
   */
  async hold(organizationId: string, digest: string): Promise<HeldArtifact> {
    const release = this.keep(digest);
    try {
      await this.#sweeping;
      const { index, folder } = await this.#unpack(organizationId, digest);
      const key = { organizationId, digest };
      const servicePath = join(folder, index.entry);
      const readCode = () => this.#readCode(organizationId, digest);
      const unpacked = new Map(placed(unpackedFiles(index)).map((each) => [each.file, each]));
      const openFile = (file: IndexedFile) =>
        verified(readPlaced(folder, unpacked.get(file)) ?? this.#readBlob(file, key), file);
      return { index, digest, servicePath, readCode, openFile, release };
    } catch (err) {
      release();
      throw err;
    }
  }

  /** Has a sweep leave an artifact where it is, if it is there, until the function returned is called. */
  keep(digest: string): () => void {
    this.#holders.set(digest, (this.#holders.get(digest) ?? 0) + 1);
    let isHeld = true;
    return () => {
      if (isHeld) {
        isHeld = false;
        this.#holders.set(digest, (this.#holders.get(digest) ?? 1) - 1);
      }
    };
  }

  /** Removes the artifacts without holders; resolves with their number. */
  async sweep(): Promise<number> {
    await this.#sweeping;
    const unused = (await readdir(this.#folder)).filter(
      (name) => DIGEST.test(name) && !this.#holders.get(name),
    );
    const removing = (async () => {
      for (const digest of unused) {
        this.#forget(digest);
        await rm(join(this.#folder, digest), { recursive: true, force: true });
      }
    })();
    // A `hold` of one of them waits for the sweep, and then unpacks it again.
    this.#sweeping = removing.catch(() => undefined);
    await removing;
    return unused.length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sweeping;
    await Promise.allSettled(this.#unpacked.values());
    this.#own?.[Symbol.dispose]();
  }

  #unpack(organizationId: string, digest: string): Promise<Unpacked> {
    const known = this.#unpacked.get(digest);
    if (known !== undefined) {
      return known;
    }
    const key = { organizationId, digest };
    const unpacking = this.#unpacking.run(
      async () => (await this.#find(key)) ?? (await this.#fetch(key)),
    );
    this.#unpacked.set(digest, unpacking);
    unpacking.then(
      (unpacked) => {
        if (this.#unpacked.get(digest) === unpacking) {
          this.#ready.set(digest, unpacked);
        }
      },
      () => {
        if (this.#unpacked.get(digest) === unpacking) {
          this.#forget(digest);
        }
      },
    );
    return unpacking;
  }

  #forget(digest: string): void {
    this.#unpacked.delete(digest);
    this.#ready.delete(digest);
  }

  async #readCode(organizationId: string, digest: string): Promise<string> {
    const unpacked = await this.#unpack(organizationId, digest);
    unpacked.verified ??= this.#unpacking.run(() => this.#verify(unpacked, digest));
    try {
      await unpacked.verified;
    } catch (cause) {
      await this.#unpack(organizationId, digest);
      // A sandbox that has started already has the removed folder mounted.
      throw new Error("its unpacked files were damaged, and have been fetched again", { cause });
    }
    return readFile(join(unpacked.folder, unpacked.index.entry), "utf8");
  }

  /** Digests every file. If one is not as the index says, removes the folder and rejects. */
  async #verify({ index, folder }: Unpacked, digest: string): Promise<void> {
    try {
      for (const each of placed(unpackedFiles(index))) {
        await this.#digest(folder, each);
      }
    } catch (err) {
      await rm(folder, { recursive: true, force: true });
      this.#forget(digest);
      // Others may have links to what is damaged.
      for (const each of this.#ready.values()) {
        each.verified = undefined;
      }
      this.#options.log.warn(
        { err, digest },
        "an unpacked artifact is damaged: it is fetched again",
      );
      throw err;
    }
  }

  /** Rejects with an `ArtifactError` for a file, or a part of one, that is not as the index says. */
  async #digest(folder: string, placed: PlacedFile<IndexedFile>): Promise<void> {
    const buffer = this.#buffers.pop() ?? Buffer.allocUnsafeSlow(VERIFIED_CHUNK_BYTES);
    try {
      for await (const _ of verified(chunksOf(folder, placed, buffer), placed.file)) {
        // Read only to verify the digest.
      }
    } finally {
      this.#buffers.push(buffer);
    }
  }

  /** An artifact from before this process started. One without its index is removed. */
  async #find({ organizationId, digest }: ArtifactKey): Promise<Unpacked | undefined> {
    const folder = join(this.#folder, digest);
    try {
      const text = await readFile(join(folder, INDEX_NAME), "utf8");
      if (digestOf(text) !== digest) {
        throw new Error(`its ${INDEX_NAME} is another one`);
      }
      return { organizationId, index: verifyIndex(text), folder, verified: undefined };
    } catch (err) {
      if ((err as NodeJS.ErrnoException).code !== "ENOENT") {
        this.#options.log.warn(
          { err, digest },
          "an unpacked artifact is damaged: it is fetched again",
        );
      }
      await rm(folder, { recursive: true, force: true });
      return undefined;
    }
  }

  async #fetch({ organizationId, digest }: ArtifactKey): Promise<Unpacked> {
    const { hosting } = this.#options;
    const text = await hosting.getIndex({ organizationId, digest });
    if (text === undefined || digestOf(text) !== digest) {
      throw new Error(`there is no artifact ${digest} any more`);
    }
    const open = await this.#blobReader({ organizationId, digest });
    const folder = join(this.#folder, digest);
    const link = this.#linksFor(organizationId);
    const index = await assembleArtifact(text, { open, link }, folder);
    return { organizationId, index, folder, verified: Promise.resolve() };
  }

  /** Links large files of other artifacts of the organization. */
  #linksFor(organizationId: string): LinkFile {
    let found: ReadonlyMap<string, readonly string[]> | undefined;
    return async (parts, path) => {
      if (bytesOf(parts) < MIN_LINKED_FILE_BYTES) {
        return false;
      }
      found ??= this.#largeFiles(organizationId);
      for (const there of found.get(contentOf(parts)) ?? []) {
        try {
          await link(there, path);
          await this.#digestWhole(path, parts);
          return true;
        } catch (err) {
          // It was swept or damaged, or this file system has no links: it is fetched.
          this.#options.log.debug({ err, path: there }, "a file could not be linked");
          await rm(path, { force: true });
        }
      }
      return false;
    };
  }

  /** The paths of the large files of an organization's artifacts, by their content. */
  #largeFiles(organizationId: string): ReadonlyMap<string, readonly string[]> {
    const found = new Map<string, string[]>();
    for (const { index, folder, ...of } of this.#ready.values()) {
      const files = of.organizationId === organizationId ? placed(unpackedFiles(index)) : [];
      for (const [path, places] of Map.groupBy(files, ({ path }) => path)) {
        const parts = places.map(({ file }) => file);
        if (bytesOf(parts) >= MIN_LINKED_FILE_BYTES) {
          const content = contentOf(parts);
          found.set(content, [...(found.get(content) ?? []), join(folder, path)]);
        }
      }
    }
    return found;
  }

  async #digestWhole(path: string, parts: readonly IndexedFile[]): Promise<void> {
    let start = 0;
    for (const file of parts) {
      const end = start + file.size;
      const isLast = file === parts.at(-1);
      const place = { file, path: basename(path), start, ...(!isLast && { end }) };
      await this.#digest(dirname(path), place);
      start = end;
    }
  }

  async *#readBlob(file: IndexedFile, artifact: ArtifactKey): AsyncGenerator<Uint8Array> {
    const open = await this.#blobReader(artifact);
    yield* open(file);
  }

  /** Returns the reader of the files of an artifact in the blob store. */
  async #blobReader({ organizationId, digest }: ArtifactKey): Promise<OpenFile> {
    const { hosting, blobs } = this.#options;
    const files = await hosting.listArtifactFiles({ organizationId, digest });
    const blobIds = new Map(files.map(({ sha256, blobId }) => [sha256, blobId]));
    return ({ sha256, size }) => {
      const blobId = blobIds.get(sha256);
      if (blobId === undefined) {
        throw new Error(`the file ${sha256} of artifact ${digest} is not in the blob store`);
      }
      return blobs.read(blobId, { start: 0, end: size });
    };
  }
}

/** The size of a file. */
function bytesOf(parts: readonly IndexedFile[]): number {
  return parts.reduce((sum, { size }) => sum + size, 0);
}

/** What two files have in common that may be one. */
function contentOf(parts: readonly IndexedFile[]): string {
  return parts.map(({ sha256, size, executable }) => `${sha256} ${size} ${executable}`).join();
}

/** The bytes of a file, or of a part of it; undefined for what is not unpacked. */
function readPlaced(
  folder: string,
  file: PlacedFile<IndexedFile> | undefined,
): AsyncIterable<Uint8Array> | undefined {
  if (file === undefined) {
    return undefined;
  }
  const { path, start, end } = file;
  return createReadStream(join(folder, path), { start, ...(end && { end: end - 1 }) });
}

/** Reads a file, or a part of it, into the same memory again and again. */
async function* chunksOf(
  folder: string,
  { path, start, end = Number.POSITIVE_INFINITY }: PlacedFile<IndexedFile>,
  buffer: Buffer,
): AsyncGenerator<Uint8Array> {
  await using file = await open(join(folder, path));
  for (let at = start; at < end; ) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, end - at), at);
    if (bytesRead === 0) {
      return;
    }
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}
