/**
 * The part of the hosting port for manifests: what a worker of a deployment has said of its
 * service, so that a node can serve it before any of its own workers has started.
 */
import type { DeploymentKey } from "./deployment-key.ts";

/** What a manifest holds for. */
export interface ManifestFacts {
  /** Digest of all that it may depend on: the artifact, settings and secrets. */
  readonly madeOf: string;
  /** The form that nodes of its time wrote. */
  readonly format: number;
  /** Whether a worker needs nothing but the files of the artifact, on whatever node. */
  readonly filesOnly: boolean;
}

export interface StoredManifest extends ManifestFacts {
  /** As JSON; the caller checks it. */
  readonly manifest: string;
}

export interface ManifestStorage {
  /** Stores the manifest of a deployment in the place of an earlier one, if there is the deployment. */
  storeManifest(parameters: DeploymentKey & StoredManifest): Promise<void>;

  /** The manifest of a deployment; undefined: no worker has told one. */
  getManifest(parameters: DeploymentKey): Promise<StoredManifest | undefined>;
}
