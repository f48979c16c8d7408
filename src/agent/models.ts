/**
 * The models of the revisions that this agent runs. The store on disk is that of a node; their files
 * come from the node that a worker is registered with.
 */
import { digestOf } from "../artifacts/index-file.ts";
import { verifyModelIndex } from "../artifacts/model-index.ts";
import { type HeldModel, type HoldModelOptions, ModelStore } from "../hosting/models/store.ts";
import type { Log } from "../log/log.ts";
import { type BlobSource, readBlob, readModelIndex } from "./files.ts";

interface AgentModelsOptions {
  readonly folder: string;
  readonly maxBytes: number;
  readonly log: Log;
}

export class AgentModels implements AsyncDisposable {
  readonly #store: ModelStore;
  /** By the digests of models: the session that asked last. */
  readonly #sources = new Map<string, BlobSource>();

  constructor(options: AgentModelsOptions) {
    const texts = new Map<string, string>();
    const indexOf = async (digest: string): Promise<string> => {
      const text = texts.get(digest) ?? (await readModelIndex(this.#source(digest), digest));
      if (digestOf(text) === digest) {
        texts.set(digest, text);
      }
      return text;
    };
    this.#store = new ModelStore({
      ...options,
      hosting: {
        getIndex: ({ digest }) => indexOf(digest),
        listArtifactFiles: async ({ digest }) =>
          verifyModelIndex(await indexOf(digest)).index.files.map(({ sha256, size }) => ({
            sha256,
            sizeBytes: size,
            blobId: `${digest} ${sha256} ${size}`,
          })),
      },
      blobs: {
        read: (blobId) => {
          const [digest = "", sha256 = "", size = ""] = blobId.split(" ");
          const wanted = { case: "model", value: { digest, sha256 } } as const;
          return readBlob(this.#source(digest), wanted, Number(size));
        },
      },
    });
  }

  start(): Promise<void> {
    return this.#store.start();
  }

  /** Holds a model of an artifact, which is brought here first; see `ModelStore`. */
  hold(digest: string, source: BlobSource, options: HoldModelOptions): Promise<HeldModel> {
    this.#sources.set(digest, source);
    // Whose models these are does not matter here: the token is for one organization.
    return this.#store.hold({ organizationId: "", digest }, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store[Symbol.asyncDispose]();
  }

  #source(digest: string): BlobSource {
    const source = this.#sources.get(digest);
    if (source === undefined) {
      throw new Error(`no session has the model ${digest}`);
    }
    return source;
  }
}
