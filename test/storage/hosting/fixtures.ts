/** A platform for tests with one organization, and short ways to deploy to it. */
import { createHash } from "node:crypto";
import type { DeploymentRecord } from "../../../src/storage/accounts/organizations.ts";
import type { HostingStorage } from "../../../src/storage/hosting/hosting.ts";
import type { NewArtifact } from "../../../src/storage/hosting/revisions.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { Platform } from "../accounts/fixtures.ts";

export const HOUR_MS = 3_600_000;

type CreateRevision = Parameters<HostingStorage["createRevision"]>[0];

export function sha256(content: string): string {
  return createHash("sha256").update(content).digest("hex");
}

/** An artifact of one file for each of the contents. */
export function artifactOf(...contents: readonly string[]): NewArtifact {
  const index = JSON.stringify(contents);
  return {
    digest: sha256(index),
    index,
    endpoints: [
      { name: "summarize", kind: "api" },
      { name: "summarize_batch", kind: "task" },
    ],
    files: contents.map((content) => ({ sha256: sha256(content), sizeBytes: content.length })),
  };
}

export class HostingPlatform extends Platform {
  readonly storage: Storage;
  readonly hosting: HostingStorage;
  /** Of `acme`. */
  organizationId = "";

  static async on(storage: Storage): Promise<HostingPlatform> {
    const platform = new HostingPlatform(storage);
    const { organizationId } = await platform.setUp();
    platform.organizationId = organizationId;
    return platform;
  }

  private constructor(storage: Storage) {
    super(storage.accounts);
    this.storage = storage;
    this.hosting = storage.hosting;
  }

  get keptUntilMs(): number {
    return this.nowMs + HOUR_MS;
  }

  register(content: string, blobId = this.newId("blob")) {
    const { organizationId, keptUntilMs } = this;
    const file = { sha256: sha256(content), sizeBytes: content.length };
    const key = { organizationId, blobId };
    return this.hosting.registerFile({ ...key, ...file, keptUntilMs, maxBytes: 1_000 });
  }

  /** Registers and finishes a file; answers its blob's id. */
  async upload(content: string): Promise<string> {
    const { organizationId, keptUntilMs } = this;
    const blobId = this.newId("blob");
    await this.register(content, blobId);
    await this.hosting.finishFile({ organizationId, blobId, keptUntilMs });
    return blobId;
  }

  missing(...contents: readonly string[]): Promise<string[]> {
    const { organizationId, keptUntilMs } = this;
    return this.hosting.findMissingFiles({
      organizationId,
      keptUntilMs,
      sha256: contents.map(sha256),
    });
  }

  /** What `createRevision` is asked with. */
  newRevision(artifact: NewArtifact, rest: Partial<CreateRevision> = {}): CreateRevision {
    return {
      ...this.deed("ada@example.com"),
      organizationId: this.organizationId,
      name: "summarizer",
      deploymentId: "summarizer-id",
      artifact,
      limit: 10,
      maxSecrets: 3,
      keptRevisions: 10,
      ...rest,
    };
  }

  /** Uploads an artifact's files and makes it the next revision of `summarizer`, or of another. */
  async deploy(
    contents: readonly string[],
    rest: Partial<CreateRevision> = {},
  ): Promise<DeploymentRecord> {
    for (const content of contents) {
      await this.upload(content);
    }
    const made = await this.hosting.createRevision(this.newRevision(artifactOf(...contents), rest));
    if (made.outcome !== "created") {
      throw new Error(`not deployed: ${made.outcome}`);
    }
    return made.deployment;
  }

  /** Sweeps all that is unused now; answers the blobs. */
  async sweep(): Promise<string[]> {
    const swept: string[] = [];
    for (;;) {
      const { nowMs } = this;
      const again = { againMs: nowMs + 60_000, limit: 2 };
      const taken = await this.hosting.takeUnusedFiles({ nowMs, ...again });
      if (taken === undefined) {
        return swept.sort();
      }
      swept.push(...taken.blobIds);
      await this.hosting.forgetFiles(taken);
    }
  }

  remove(name = "summarizer", force = false) {
    const { organizationId } = this;
    return this.accounts.deleteDeployment({ ...this.deed(), organizationId, name, force });
  }

  /** Deletes in small pieces what deleted deployments have left. */
  async prune(): Promise<void> {
    const { nowMs } = this;
    while ((await this.storage.pruneDeleted({ nowMs, limit: 2 })) > 0) {}
    while ((await this.hosting.pruneHosting({ nowMs, limit: 2 })) > 0) {}
  }
}
