/**
 * Stored manifests: what a worker of a deployment said of its service is kept in the database, so
 * that a node serves a deployment at rest before any of its own workers has started.
 *
 * A manifest holds for what it was made of: the artifact, and the settings and secrets that decide
 * a roll-out (`keyOf`), for code may read its environment. It also holds only for nodes that read
 * its form. Anything else is as if there were none, and a worker proves the service anew.
 *
 * It is believed until a worker has started, no longer: what that one tells takes its place
 * (`Rollout.told`).
 */
import { createHash } from "node:crypto";
import { type ArtifactIndex, IMAGE_LOCK_NAME, SYSTEM_LOCK_NAME } from "../artifacts/index-file.ts";
import { awaitedWorkers } from "../deployments/placement.ts";
import type { Log } from "../log/log.ts";
import { readManifest } from "../pool/checks/check-manifest.ts";
import type { ServiceManifest } from "../protocol/manifest.ts";
import type { ManifestStorage } from "../storage/hosting/manifests.ts";
import type { DesiredDeployment } from "../storage/hosting/revisions.ts";
import { keyOf } from "./preparation.ts";

/** The form of manifests. It grows when nodes need of one what workers of before did not tell. */
const MANIFEST_FORMAT = 1;

export class Manifests {
  readonly #hosting: ManifestStorage;
  readonly #log: Log;
  /** The deployments whose stored manifests cannot be read. */
  readonly #unreadable = new Set<string>();

  constructor({ hosting, log }: { readonly hosting: ManifestStorage; readonly log: Log }) {
    this.#hosting = hosting;
    this.#log = log;
  }

  /**
   * Whether a deployment may be left alone until its first call: it wants no worker at rest, what
   * it would tell is known, and a worker needs nothing that takes long to bring here.
   */
  maySleep(record: DesiredDeployment): boolean {
    const { desiredState, settings, manifest } = record;
    return (
      desiredState === "running" &&
      settings.minWorkers === 0 &&
      manifest?.filesOnly === true &&
      this.#holds(record)
    );
  }

  /** The stored manifest; undefined where none holds, or what is stored cannot be read. */
  async read(record: DesiredDeployment): Promise<ServiceManifest | undefined> {
    if (!this.#holds(record)) {
      return undefined;
    }
    const stored = await this.#hosting.getManifest(record);
    const manifest =
      stored?.madeOf === record.manifest?.madeOf ? parse(stored?.manifest) : undefined;
    if (manifest === undefined) {
      const { deploymentId } = record;
      this.#unreadable.add(deploymentId);
      this.#log.warn({ deploymentId }, "a stored manifest cannot be read: a worker tells it again");
    }
    return manifest;
  }

  /** Stores what a worker has told, if that is news. Never rejects. */
  async note(
    record: DesiredDeployment,
    index: ArtifactIndex,
    { manifest, wasOther }: { readonly manifest: ServiceManifest; readonly wasOther: boolean },
  ): Promise<void> {
    const { organizationId, deploymentId } = record;
    if (this.#holds(record) && !wasOther) {
      return;
    }
    this.#unreadable.delete(deploymentId);
    await this.#hosting
      .storeManifest({
        ...{ organizationId, deploymentId, madeOf: madeOf(record), format: MANIFEST_FORMAT },
        ...{
          filesOnly: needsFilesOnly(record, index, manifest),
          manifest: JSON.stringify(manifest),
        },
      })
      .catch((err: unknown) => this.#log.warn({ err }, "a manifest could not be stored"));
  }

  #holds(record: DesiredDeployment): boolean {
    const { manifest, deploymentId } = record;
    return (
      manifest?.format === MANIFEST_FORMAT &&
      manifest.madeOf === madeOf(record) &&
      !this.#unreadable.has(deploymentId)
    );
  }
}

function madeOf(record: DesiredDeployment): string {
  return createHash("sha256").update(keyOf(record)).digest("hex");
}

/** No packages, models or images to bring here first, and nothing that depends on the node. */
function needsFilesOnly(
  record: DesiredDeployment,
  { kind, python, platform, models, files }: ArtifactIndex,
  manifest: ServiceManifest,
): boolean {
  return (
    [kind, python, platform, models].every((each) => each === undefined) &&
    !files.some(({ path }) => path === SYSTEM_LOCK_NAME || path === IMAGE_LOCK_NAME) &&
    record.settings.network.access === "open" &&
    awaitedWorkers(record, manifest, { labels: {}, hasCode: true }) === undefined
  );
}

function parse(text: string | undefined): ServiceManifest | undefined {
  try {
    const value: unknown = JSON.parse(text ?? "");
    return readManifest(value);
  } catch {
    return undefined;
  }
}
