/** The data of a node that has served many deployments before, which all sleep now. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { indexFiles } from "../../../src/artifacts/content.ts";
import {
  digestOf,
  ENTRY_NAME,
  type IndexedFile,
  writeIndex,
} from "../../../src/artifacts/index-file.ts";
import { openFile } from "../../../src/artifacts/pack.ts";
import { assembleArtifact } from "../../../src/artifacts/unpack.ts";
import { LastServed } from "../../../src/hosting/last-served.ts";
import { FolderBlobStore } from "../../../src/storage/blobs/folder.ts";
import { SqliteStorage } from "../../../src/storage/sqlite/storage.ts";
import { createIdSource } from "../../../src/tasks/id.ts";
import { artifact } from "../hosting/world.ts";

const MIB = 1024 ** 2;

const OPERATOR = { name: "operator", id: "", address: "" };

/** Deployments that are made at a time, so that they share commits. */
const AT_A_TIME = 50;

/** Adds so many deployments of `acme`, each with code of its own, to the data of a platform. */
export async function makeSleepers(dataFolder: string, count: number): Promise<void> {
  mkdirSync(join(dataFolder, "artifacts"), { recursive: true });
  await using storage = new SqliteStorage(join(dataFolder, "tessera.db"));
  await storage.start();
  await using blobs = new FolderBlobStore(join(dataFolder, "blobs"));
  await blobs.start();
  const found = await storage.accounts.findOrganization({ name: "acme" });
  const maker = new Maker(dataFolder, {
    storage,
    blobs,
    organizationId: found?.organizationId ?? "",
  });
  await maker.uploadShared();
  for (let made = 0; made < count; made += AT_A_TIME) {
    const size = Math.min(AT_A_TIME, count - made);
    await Promise.all(Array.from({ length: size }, (_, index) => maker.make(made + index)));
  }
}

class Maker {
  readonly #storage: SqliteStorage;
  readonly #blobs: FolderBlobStore;
  readonly #artifacts: string;
  readonly #served: LastServed;
  readonly #newId = createIdSource();
  readonly #organizationId: string;

  constructor(
    dataFolder: string,
    data: {
      readonly storage: SqliteStorage;
      readonly blobs: FolderBlobStore;
      readonly organizationId: string;
    },
  ) {
    this.#storage = data.storage;
    this.#blobs = data.blobs;
    this.#organizationId = data.organizationId;
    this.#artifacts = join(dataFolder, "artifacts");
    this.#served = new LastServed(join(this.#artifacts, "served"));
  }

  /** Uploads the files that all have in common. */
  async uploadShared(): Promise<void> {
    const built = await artifact();
    for (const file of built.index.files.filter(({ path }) => path !== ENTRY_NAME)) {
      await this.#upload(file, openFile(built, file));
    }
  }

  /** A deployment that was rolled out, unpacked and noted as served here. */
  async make(index: number): Promise<void> {
    const built = await artifact();
    const entry = built.index.files.find(({ path }) => path === ENTRY_NAME) as IndexedFile;
    const pieces: Uint8Array[] = [];
    for await (const piece of openFile(built, entry)) {
      pieces.push(piece);
    }
    const code = Buffer.concat([...pieces, Buffer.from(`\n// ${index}\n`)]);
    const [own] = await indexFiles(new Map([[ENTRY_NAME, code]]));
    const files = built.index.files.map((file) => (file === entry ? (own as IndexedFile) : file));
    const text = writeIndex({ ...built.index, files });
    const digest = digestOf(text);
    await this.#upload(own as IndexedFile, toIterable(code));
    const deploymentId = this.#newId();
    await this.#storage.hosting.createRevision({
      ...this.#deed(),
      organizationId: this.#organizationId,
      name: `sleeper-${index}`,
      deploymentId,
      artifact: {
        digest,
        index: text,
        endpoints: built.index.service.endpoints.map(({ name, kind }) => ({ name, kind })),
        files: files.map(({ sha256, size }) => ({ sha256, sizeBytes: size })),
      },
      settings: { minWorkers: 0, maxWorkers: 1 },
      limit: 10_000,
      maxSecrets: 10,
      keptRevisions: 10,
    });
    const folder = join(this.#artifacts, digest);
    const open = (file: IndexedFile) =>
      file.path === ENTRY_NAME ? toIterable(code) : openFile(built, file);
    await assembleArtifact(text, { open }, folder);
    await this.#served.set(deploymentId, { revision: 1, digest });
  }

  async #upload({ sha256, size }: IndexedFile, content: AsyncIterable<Uint8Array>): Promise<void> {
    const { hosting } = this.#storage;
    const key = { organizationId: this.#organizationId, blobId: this.#newId() };
    const keptUntilMs = Date.now() + 3_600_000;
    const file = { sha256, sizeBytes: size, keptUntilMs, maxBytes: 1024 * MIB };
    await hosting.registerFile({ ...key, ...file });
    await this.#blobs.write(key.blobId, content);
    await hosting.finishFile({ ...key, keptUntilMs });
  }

  #deed() {
    return { by: OPERATOR, nowMs: Date.now(), eventId: this.#newId() };
  }
}

async function* toIterable(content: Uint8Array): AsyncGenerator<Uint8Array> {
  yield content;
}
