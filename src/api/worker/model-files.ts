/** The models of an artifact, as joined workers read them: from the blob store, for a session that has them. */
import { problem } from "../../errors.ts";
import type { BlobStore, ByteRange } from "../../storage/blobs.ts";
import type { HostingStorage } from "../../storage/hosting/hosting.ts";

/** Models whose lists of files are kept: a worker reads one part after the other. */
const MAX_KNOWN_MODELS = 16;

export interface ModelFilesOptions {
  readonly hosting: Pick<HostingStorage, "getIndex" | "listArtifactFiles">;
  readonly blobs: Pick<BlobStore, "read">;
}

interface OfOrganization {
  readonly organizationId: string;
  readonly digest: string;
}

type Stored = ReadonlyMap<string, { readonly blobId: string; readonly sizeBytes: number }>;

export class ModelFiles {
  readonly #options: ModelFilesOptions;
  readonly #known = new Map<string, Promise<Stored>>();

  constructor(options: ModelFilesOptions) {
    this.#options = options;
  }

  /** The text of a model's index. Throws MODEL_NOT_FOUND. */
  async index(key: OfOrganization): Promise<string> {
    const text = await this.#options.hosting.getIndex(key);
    if (text === undefined) {
      throw gone(key);
    }
    return text;
  }

  /** The bytes of a file, or of a part of one, of a model. Throws MODEL_NOT_FOUND. */
  async *read(
    key: OfOrganization & { readonly sha256: string },
    range: Pick<ByteRange, "start">,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const file = (await this.#filesOf(key)).get(key.sha256);
    if (file === undefined) {
      this.#known.delete(keyOf(key));
      throw gone(key);
    }
    const { blobId, sizeBytes } = file;
    if (range.start > sizeBytes) {
      throw problem("BLOB_RANGE_INVALID", `the file has ${sizeBytes} bytes`);
    }
    try {
      yield* this.#options.blobs.read(blobId, { start: range.start, end: sizeBytes });
    } catch (err) {
      // The model may have been deleted, and be here again as other blobs: the next read asks.
      this.#known.delete(keyOf(key));
      throw err;
    }
  }

  #filesOf(model: OfOrganization): Promise<Stored> {
    const { organizationId, digest } = model;
    const key = keyOf(model);
    const known = this.#known.get(key);
    if (known !== undefined) {
      return known;
    }
    const files = this.#options.hosting
      .listArtifactFiles({ organizationId, digest })
      .then((all) => new Map(all.map(({ sha256, ...file }) => [sha256, file])));
    files.catch(() => this.#known.delete(key));
    for (const oldest of this.#known.keys()) {
      if (this.#known.size < MAX_KNOWN_MODELS) {
        break;
      }
      this.#known.delete(oldest);
    }
    this.#known.set(key, files);
    return files;
  }
}

function keyOf({ organizationId, digest }: OfOrganization): string {
  return `${organizationId} ${digest}`;
}

function gone({ digest }: OfOrganization) {
  return problem("MODEL_NOT_FOUND", `the model ${digest} is not here any more`);
}
