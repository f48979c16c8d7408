/**
 * System packages on this machine: the layers of deployments, each made once of its lock, and kept
 * and removed as the environments of services in Python are, in the same quota.
 */
import { hash } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { systemLibraries } from "../../pool/sandbox/bubblewrap.ts";
import { libraryFolder, linkMachineLibraries } from "../../pool/sandbox/layer.ts";
import { EnvironmentError, type EnvironmentProgress } from "../environments/environment.ts";
import type { FolderStore, HeldFolder } from "../environments/folder-store.ts";
import { MAX_ENVIRONMENT_FILES, overQuota, withinDisk } from "../environments/install.ts";
import { Apt, type AptOptions, type LockOptions } from "./apt.ts";
import { bytesOfLock, readSystemLock, writeSystemLock } from "./lock.ts";
import { unpackPackages } from "./unpack.ts";

/** Why a machine has no system packages for services. */
export const LAYERS_UNAVAILABLE =
  "its system packages (packages) need the kernel's sandbox, and this machine has none: its operator installs bubblewrap, or the service does without";

/** The layer in its folder of the store, beside the list of its contents. */
const LAYER_NAME = "root";

interface LayersOptions extends Omit<AptOptions, "folder"> {
  readonly folders: FolderStore;
  /** Where apt keeps what it asks for and downloads; created if missing, its real path. */
  readonly aptFolder: string;
  /** Files of a layer. Default: 250,000. */
  readonly maxFiles?: number;
}

/** A lock, and for whom it is. */
interface LayerSpec {
  readonly lock: string;
  /** Whose quota of disk space it takes. Default: nobody's. */
  readonly organizationId?: string;
}

export class Layers {
  readonly #options: LayersOptions;
  readonly #apt: Apt;

  constructor(options: LayersOptions) {
    this.#options = options;
    this.#apt = new Apt({ ...options, folder: options.aptFolder });
  }

  /** Locks packages, with all that they need, to what the machine's sources have now. */
  async lock(names: readonly string[], options?: LockOptions): Promise<string> {
    return await this.#apt.lock(names, options);
  }

  /**
   * Holds the layer of a lock, which is made first if it is not there. Rejects with an
   * `EnvironmentError`.
   */
  async hold(
    { lock: given, organizationId = "" }: LayerSpec,
    progress: EnvironmentProgress = {},
  ): Promise<HeldFolder> {
    const { folders } = this.#options;
    const libraries = libraryFolder(systemLibraries());
    if (libraries === undefined) {
      throw new EnvironmentError(
        "ENVIRONMENT_UNAVAILABLE",
        "its system packages are for machines with the GNU C library, such as Debian or Ubuntu, and this one has another",
      );
    }
    const packages = readSystemLock(given);
    const digest = hash("sha256", `system packages\n${writeSystemLock(packages)}`, "hex");
    const held = await folders.hold(
      digest,
      {
        what: "a layer of system packages",
        organizationId,
        make: async (unfinished, { maxBytes, signal }) => {
          if (bytesOfLock(packages) > maxBytes) {
            throw overQuota(maxBytes);
          }
          const { searchPath, maxFiles = MAX_ENVIRONMENT_FILES } = this.#options;
          await mkdir(unfinished);
          const limits = { folder: unfinished, maxBytes: maxBytes * 2, maxFiles, signal };
          const files = await withinDisk(limits, (until) =>
            this.#apt.download(packages, { ...progress, signal: until }),
          );
          const layer = join(unfinished, LAYER_NAME);
          // Another layer may be about to unpack the same files: they go when they are a day old.
          await withinDisk({ ...limits, maxBytes }, (until) =>
            unpackPackages({ layer, files, maxFiles, searchPath, signal: until }),
          );
        },
      },
      progress.signal,
    );
    const folder = join(held.folder, LAYER_NAME);
    await linkMachineLibraries(folder, libraries).catch((err) => {
      held.release();
      throw err;
    });
    return { ...held, folder };
  }
}
