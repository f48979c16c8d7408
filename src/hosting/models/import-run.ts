/**
 * One run of an import: fetches the files of a pinned source into the blob store, a few at a time,
 * and makes the version ready.
 *
 * A file is stored as the index will have it: whole, or in parts of 64 MiB. What is stored is
 * reported with its digest, and the next run begins behind it: after a kill, a part of each file
 * under way is fetched again, and nothing else. A file that the organization has from an earlier
 * import, by its digest at the source, is not fetched at all. Each file is proven as a whole, by
 * what its source says of it, before the version is ready.
 */
import { createHash, type Hash } from "node:crypto";
import { ByteReader } from "../../artifacts/bytes.ts";
import { createModelIndex } from "../../artifacts/model-index.ts";
import { wholePath } from "../../artifacts/parts.ts";
import { inUnits } from "../../collections/sizes.ts";
import { problem, toProblem } from "../../errors.ts";
import type { BlobStore } from "../../storage/blobs.ts";
import type { ArtifactFiles } from "../../storage/hosting/files.ts";
import type { ImportedFile, ModelStorage } from "../../storage/hosting/models.ts";
import { Backoff } from "../../time/backoff.ts";
import {
  type PinnedSource,
  type PlannedFile,
  plannedFiles,
  type SourceContent,
  type SourceFile,
  sourceRefused,
  sourceUnavailable,
} from "./source.ts";

/** Files of one import that are fetched at a time. */
const MAX_PARALLEL_FETCHES = 4;
/** Times in a row that a file may break off, or not be there, without a part that was stored. */
const MAX_FETCH_ATTEMPTS = 6;
/** Pause before a file is tried again; it doubles. */
const FETCH_RETRY_PAUSE_MS = 500;
/** Longest pause before a file is tried again. */
const MAX_FETCH_RETRY_PAUSE_MS = 15_000;
/** How long what an import has stored may belong to no version: one that broke off goes on later. */
const IMPORTED_FILE_TTL_MS = 36 * 60 * 60_000;

interface ImportRunOptions {
  readonly organizationId: string;
  readonly source: PinnedSource;
  /** What earlier runs have stored. */
  readonly stored: readonly ImportedFile[];
  readonly hosting: Pick<
    ModelStorage & ArtifactFiles,
    "findMissingFiles" | "registerFile" | "finishFile" | "abandonFile" | "findFile" | "findImported"
  >;
  readonly blobs: Pick<BlobStore, "write" | "read">;
  /** What the organization may store, in bytes. */
  readonly maxBytes: number;
  readonly now: () => number;
  readonly newId: () => string;
  readonly signal: AbortSignal;
}

export class ImportRun {
  readonly #options: ImportRunOptions;
  /** What is stored, by its path in the index. */
  readonly #stored = new Map<string, ImportedFile>();
  #unreported: ImportedFile[] = [];
  #bytesDone = 0;

  constructor(options: ImportRunOptions) {
    this.#options = options;
  }

  /** Bytes that are stored, and those of the parts under way. */
  get bytesDone(): number {
    return this.#bytesDone;
  }

  /** What was stored since the last call. */
  takeStored(): ImportedFile[] {
    const taken = this.#unreported;
    this.#unreported = [];
    return taken;
  }

  /** Takes back what could not be reported. */
  untake(stored: readonly ImportedFile[]): void {
    this.#unreported = [...stored, ...this.#unreported];
  }

  /** Fetches everything; resolves with the index and the files that it lists. */
  async fetchAll() {
    const { source, stored, signal } = this.#options;
    await this.#keep(stored);
    const queue = source.files.values();
    const failed = new AbortController();
    const fetching = AbortSignal.any([signal, failed.signal]);
    const fetchInTurn = async (): Promise<void> => {
      for (const file of queue) {
        await this.#fetchFile(file, fetching);
      }
    };
    const fetches = Array.from({ length: MAX_PARALLEL_FETCHES }, () =>
      fetchInTurn().catch((err) => {
        // The others end too; their errors are only consequences.
        failed.abort(err);
      }),
    );
    await Promise.all(fetches);
    signal.throwIfAborted();
    failed.signal.throwIfAborted();
    const files = [...this.#stored.values()];
    const { digest, text } = createModelIndex(
      files.map(({ path, sha256, sizeBytes: size }) => ({ path, size, sha256, executable: false })),
    );
    return { digest, index: text, endpoints: [], files };
  }

  /** Takes over what was stored before and is still there. */
  async #keep(files: readonly ImportedFile[]): Promise<boolean> {
    const { hosting, organizationId } = this.#options;
    const sha256 = files.map((file) => file.sha256);
    const keptUntilMs = this.#keptUntilMs();
    const missing = new Set(
      await hosting.findMissingFiles({ organizationId, sha256, keptUntilMs }),
    );
    for (const file of files.filter((each) => !missing.has(each.sha256))) {
      this.#stored.set(file.path, file);
      this.#bytesDone += file.sizeBytes;
    }
    return missing.size === 0;
  }

  async #fetchFile(file: SourceFile, signal: AbortSignal): Promise<void> {
    const planned = plannedFiles(file);
    const isBegun = planned.some(({ path }) => this.#stored.has(path));
    if (!isBegun && (await this.#reuse(file, planned))) {
      return;
    }
    let proof = await this.#fetchRest(file, planned, signal);
    if (isBegun && !proof.holds()) {
      // What an earlier run has stored may be of something else, which it has failed by.
      for (const { path } of planned) {
        this.#forget(path);
      }
      proof = await this.#fetchRest(file, planned, signal);
    }
    proof.check();
  }

  /** Fetches what follows the stored parts of a file. */
  async #fetchRest(
    file: SourceFile,
    planned: readonly PlannedFile[],
    signal: AbortSignal,
  ): Promise<ProvenContent> {
    let proof = new ProvenContent(file);
    let next = 0;
    for (; next < planned.length; next += 1) {
      const there = this.#stored.get(planned[next]?.path ?? "");
      if (there === undefined) {
        break;
      }
      await this.#reread(there, proof);
    }
    for (const { path } of planned.slice(next)) {
      this.#forget(path);
    }
    const backoff = new Backoff(FETCH_RETRY_PAUSE_MS, MAX_FETCH_RETRY_PAUSE_MS);
    let etag: string | undefined;
    for (let failures = 0; next < planned.length; ) {
      try {
        const start = planned[next]?.start ?? 0;
        const opened = await this.#options.source.open(file, start, signal);
        checkSame(file, opened, etag);
        etag ??= opened.etag;
        await using reader = new ByteReader(opened.chunks);
        await skip(reader, start - opened.start);
        for (; next < planned.length; next += 1) {
          const passing = proof.copy();
          const part = planned[next] as PlannedFile;
          await this.#store(part, { origin: originOf(file), reader, proof: passing, signal });
          proof = passing;
          failures = 0;
          backoff.reset();
        }
        if ((await reader.takeUpTo(1)) !== undefined) {
          throw sourceRefused(
            `${file.path} has more than the ${file.size} bytes that its source says`,
          );
        }
      } catch (err) {
        signal.throwIfAborted();
        failures += 1;
        if (toProblem(err).reason !== "SOURCE_UNAVAILABLE" || failures === MAX_FETCH_ATTEMPTS) {
          throw err;
        }
        await backoff.pause(signal);
        signal.throwIfAborted();
      }
    }
    return proof;
  }

  #forget(path: string): void {
    this.#bytesDone -= this.#stored.get(path)?.sizeBytes ?? 0;
    this.#stored.delete(path);
  }

  /** Takes a file that an earlier import has stored, if all of it is there. */
  async #reuse(file: SourceFile, planned: readonly PlannedFile[]): Promise<boolean> {
    const { hosting, organizationId } = this.#options;
    const found = await hosting.findImported({ organizationId, origin: originOf(file) });
    const first = wholePath(found[0]?.path ?? "");
    const whole = found.filter((each) => wholePath(each.path) === first);
    const parts = planned.flatMap(({ path, size }, index) => {
      const part = whole[index];
      return part?.sizeBytes === size ? [{ ...part, path }] : [];
    });
    if (parts.length !== planned.length || !(await this.#keep(parts))) {
      return false;
    }
    this.#unreported.push(...parts);
    return true;
  }

  /** Passes what is stored already through the proof of its file. */
  async #reread({ sha256 }: ImportedFile, proof: ProvenContent): Promise<void> {
    const { hosting, blobs, organizationId } = this.#options;
    const found = await hosting.findFile({ organizationId, sha256 });
    if (found === undefined) {
      throw problem("FILES_MISSING", "what was fetched before is gone: import it again");
    }
    for await (const chunk of blobs.read(found.blobId)) {
      proof.update(chunk);
    }
  }

  /** Stores the next file or part from the reader. */
  async #store(
    { path, size }: PlannedFile,
    {
      origin,
      reader,
      proof,
      signal,
    }: {
      readonly origin: string;
      readonly reader: ByteReader;
      readonly proof: ProvenContent;
      readonly signal: AbortSignal;
    },
  ): Promise<void> {
    const { hosting, blobs, organizationId, maxBytes, now, newId } = this.#options;
    const key = { organizationId, blobId: newId() };
    const keptUntilMs = this.#keptUntilMs();
    // Its digest is known when it has passed.
    const registered = await hosting.registerFile({
      ...{ ...key, sha256: "", sizeBytes: size, keptUntilMs, maxBytes },
    });
    if (registered.outcome === "limit") {
      throw problem(
        "LIMIT_REACHED",
        `the files of the organization would be larger than ${inUnits(maxBytes)} together, which is what the operator of this platform allows (tessera start --max-organization-storage): delete models and deployments that are not needed, and import it again`,
      );
    }
    const hash = createHash("sha256");
    let passed = 0;
    const passing = async function* (this: ImportRun) {
      for await (const chunk of bytesFrom(reader, size)) {
        signal.throwIfAborted();
        hash.update(chunk);
        proof.update(chunk);
        passed += chunk.length;
        this.#bytesDone += chunk.length;
        yield chunk;
      }
    };
    try {
      await blobs.write(key.blobId, passing.call(this));
      const sha256 = hash.digest("hex");
      const finished = await hosting.finishFile({ ...key, keptUntilMs, sha256 });
      if (finished.outcome === "gone") {
        throw sourceUnavailable("a part took too long");
      }
      const stored = { path, sha256, sizeBytes: size, origin };
      this.#stored.set(path, stored);
      this.#unreported.push(stored);
    } catch (err) {
      this.#bytesDone -= passed;
      // If this fails too, the file is swept when its time is over.
      await hosting.abandonFile({ ...key, nowMs: now() }).catch(() => undefined);
      throw err;
    }
  }

  #keptUntilMs(): number {
    return this.#options.now() + IMPORTED_FILE_TTL_MS;
  }
}

function originOf({ proof: { kind, digest }, size }: SourceFile): string {
  return `${kind}:${digest}:${size}`;
}

/** Throws SOURCE_REFUSED for a file that is not the one of before, or not of its size. */
function checkSame(
  { path, size }: SourceFile,
  opened: SourceContent,
  etag: string | undefined,
): void {
  if (opened.size !== undefined && opened.size !== size) {
    throw sourceRefused(
      `${path} has ${opened.size} bytes at its source, and ${size} by the list of files`,
    );
  }
  if (etag !== undefined && opened.etag !== etag) {
    throw sourceRefused(`${path} was changed at its source while it was fetched: import it again`);
  }
}

/** The next bytes of a file; SOURCE_UNAVAILABLE where it ends before. */
async function* bytesFrom(reader: ByteReader, length: number) {
  for (let left = length; left > 0; ) {
    const chunk = await reader.takeUpTo(left);
    if (chunk === undefined) {
      throw sourceUnavailable("the connection to the source ended in the middle of a file");
    }
    left -= chunk.length;
    yield chunk;
  }
}

async function skip(reader: ByteReader, length: number): Promise<void> {
  for await (const _ of bytesFrom(reader, length)) {
  }
}

// Proof of a file's content while it passes: the digest that its source has told.

/** How a file begins that stands for one in Git LFS. */
const LFS_POINTER = "version https://git-lfs.github.com/spec/v1";

class ProvenContent {
  readonly #file: SourceFile;
  /** Undefined where the source proves nothing. */
  readonly #hash: Hash | undefined;
  #head: string;

  constructor(file: SourceFile, before?: ProvenContent) {
    this.#file = file;
    this.#head = before === undefined ? "" : before.#head;
    this.#hash = before === undefined ? newHash(file) : before.#hash?.copy();
  }

  /** Another one at the same place, for bytes that may have to come again. */
  copy(): ProvenContent {
    return new ProvenContent(this.#file, this);
  }

  update(chunk: Uint8Array): void {
    if (this.#head.length < LFS_POINTER.length) {
      this.#head += Buffer.from(chunk.subarray(0, LFS_POINTER.length)).toString("latin1");
    }
    this.#hash?.update(chunk);
  }

  /** Whether all that has passed is what the source has told. */
  holds(): boolean {
    return this.#hash === undefined || this.#hash.copy().digest("hex") === this.#file.proof.digest;
  }

  /** Throws SOURCE_REFUSED for another content than the source has told. */
  check(): void {
    const { path } = this.#file;
    if (this.#head.startsWith(LFS_POINTER)) {
      throw sourceRefused(
        `${path} is a pointer of Git LFS in place of its content: upload the content to the repository`,
      );
    }
    if (!this.holds()) {
      throw sourceRefused(
        `${path} is not what its digest at the source says: it was changed or damaged`,
      );
    }
  }
}

function newHash({ proof, size }: SourceFile): Hash | undefined {
  switch (proof.kind) {
    case "sha256":
      return createHash("sha256");
    case "git":
      return createHash("sha1").update(`blob ${size}\0`);
    case "etag":
      return undefined;
  }
}
