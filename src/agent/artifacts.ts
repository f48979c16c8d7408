/**
 * The artifacts of the revisions that this agent runs. The cache on disk is that of a node; its
 * files come from the node that a worker is registered with, and each is verified by its digest.
 */
import { digestOf, verifyIndex } from "../artifacts/index-file.ts";
import { ArtifactCache, type HeldArtifact } from "../hosting/artifact-cache.ts";
import type { Log } from "../log/log.ts";
import { type BlobSource, readBlob } from "./files.ts";

/** Whose artifacts these are does not matter here: the token is for one organization. */
const ORGANIZATION = "";

interface Source extends BlobSource {
  /** The text of the index. */
  readonly text: string;
}

export class AgentArtifacts implements AsyncDisposable {
  readonly #cache: ArtifactCache;
  /** By the digests of the indexes: the session that asked last. */
  readonly #sources = new Map<string, Source>();

  constructor({ folder, log }: { readonly folder: string; readonly log: Log }) {
    this.#cache = new ArtifactCache({
      folder,
      log,
      hosting: {
        getIndex: async ({ digest }) => this.#sources.get(digest)?.text,
        listArtifactFiles: async ({ digest }) =>
          verifyIndex(this.#source(digest).text).files.map(({ sha256, size }) => ({
            sha256,
            sizeBytes: size,
            blobId: `${digest} ${sha256} ${size}`,
          })),
      },
      blobs: { read: (blobId) => this.#read(blobId) },
    });
  }

  start(): Promise<void> {
    return this.#cache.start();
  }

  /**
   * Holds the artifact of an index. Rejects with an `ArtifactError` when the index or a file is
   * not what its digest says, and with STORAGE_UNAVAILABLE when a file does not come.
   */
  async hold(text: string, source: BlobSource): Promise<HeldArtifact> {
    verifyIndex(text);
    const digest = digestOf(text);
    this.#sources.set(digest, { text, ...source });
    return await this.#cache.hold(ORGANIZATION, digest);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cache[Symbol.asyncDispose]();
  }

  #source(digest: string): Source {
    const source = this.#sources.get(digest);
    if (source === undefined) {
      throw new Error(`no session has the artifact ${digest}`);
    }
    return source;
  }

  #read(blobId: string): AsyncIterable<Uint8Array> {
    const [digest = "", value = "", size = ""] = blobId.split(" ");
    return readBlob(this.#source(digest), { case: "artifactSha256", value }, Number(size));
  }
}
