/** The environment of a service in Python: an interpreter with the packages of its lock. */

/** An environment on this machine, which stays there until it is released. */
export interface HeldEnvironment {
  /** The absolute path of its interpreter. */
  readonly python: string;
  /** All that it reads, by absolute paths: itself, and the installation of its interpreter. */
  readonly files: readonly string[];
  /**
   * Verifies its files, once. Rejects when they were damaged: by then it is made again, and what
   * is started next finds it whole.
   */
  verify(): Promise<void>;
  /** A second call does nothing. */
  release(): void;
}

/** What an environment is made of. Those that are equal are one on a machine. */
export interface EnvironmentSpec {
  /** The text of the lock: requirements with hashes. */
  readonly lock: string;
  /** The minor version of its interpreter, such as `3.11`. */
  readonly python: string;
  /** Whose quota of disk space it takes. Default: nobody's. */
  readonly organizationId?: string;
  /** The packages themselves; nothing else is asked for them then. Default: the operator's index. */
  readonly wheels?: readonly Wheel[];
  /**
   * Memory of a worker. Compiling the packages takes no more of it, and never more than 512 MiB, the
   * default.
   */
  readonly memoryBytes?: number;
}

export interface Wheel {
  /** Its file name, such as `six-1.17.0-py3-none-any.whl`. */
  readonly name: string;
  /** The SHA-256 of its content, or those of the parts that it comes in. */
  readonly sha256: readonly string[];
  open(): AsyncIterable<Uint8Array>;
}

export interface EnvironmentProgress {
  readonly signal?: AbortSignal;
  /** Called with what it does, one line each time. */
  readonly onProgress?: (text: string) => void;
}

/** Where environments are kept. */
export interface Environments {
  /** Holds an environment, which is made first if it is not there. Rejects with an `EnvironmentError`. */
  hold(spec: EnvironmentSpec, options?: EnvironmentProgress): Promise<HeldEnvironment>;
}

/** Why an environment cannot be made: what, where, and what to do about it. */
export class EnvironmentError extends Error {
  readonly reason: "ENVIRONMENT_UNAVAILABLE" | "LOCK_INVALID" | "SANDBOX_UNAVAILABLE";
  /** What was deployed is at fault by itself, so that it fails again whenever it is tried. */
  readonly isFinal: boolean;

  constructor(
    reason: EnvironmentError["reason"],
    message: string,
    { isFinal = false, ...options }: ErrorOptions & { readonly isFinal?: boolean } = {},
  ) {
    super(message, options);
    this.reason = reason;
    this.isFinal = isFinal;
  }
}

/** Packages take more than they may, of the disk or of memory: what there is of them is of no use. */
export class OversizedError extends EnvironmentError {
  constructor(message: string, options?: { readonly isFinal: boolean }) {
    super("ENVIRONMENT_UNAVAILABLE", message, options);
  }
}

/** Why a node does not run services in Python. */
export const PYTHON_UNAVAILABLE =
  "services in Python run in the kernel's sandbox or not at all, and this node has none: its operator installs bubblewrap, or trusts everyone who deploys (tessera start --python-sandbox none)";
