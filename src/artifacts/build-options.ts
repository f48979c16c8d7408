/** What a build is asked for, and what it gives, whatever the language of the service. */
import type { Probe } from "../protocol/messages.ts";
import type { FileSource } from "./content.ts";
import type { ArtifactIndex } from "./index-file.ts";

export type BuildStep =
  | "compile"
  | "trace"
  | "lock"
  | "install"
  | "read"
  | "load"
  | "packages"
  | "image";

export interface BuildOptions {
  /** Files that tracing does not find, as glob patterns from the service's folder. Default: none. */
  readonly include?: readonly string[];
  /** Limit of the time to load the service. Default: 2 min. */
  readonly readyTimeoutMs?: number;
  /** Whether a service in Python is constructed, too. Default: `import`. */
  readonly probe?: Probe;
  /** System packages that it needs, besides those that its code names. Default: none. */
  readonly packages?: readonly string[];
  /**
   * Locks system packages with all that they need, where they will run. The apt of this machine
   * locks what it leaves undefined. Default: all.
   */
  readonly lockSystem?: (names: readonly string[]) => Promise<string | undefined>;
  /** The container image that it runs in, before the one that its code names. Default: that one. */
  readonly image?: string;
  /**
   * Locks a container image to its digest, where it will run. This machine asks for what it leaves
   * undefined. Default: for all.
   */
  readonly lockImage?: (image: string) => Promise<string | undefined>;
  /** The environment variables of the test worker. Default: none. */
  readonly env?: { readonly [name: string]: string };
  /** Called at the beginning of each step. */
  readonly onStep?: (step: BuildStep) => void;
  /** Cancels the build. */
  readonly signal?: AbortSignal;
  /** How services in Python are built. */
  readonly python?: PythonBuildOptions;
}

export interface BuiltArtifact {
  readonly index: ArtifactIndex;
  /** SHA-256 of the index's text, in hex. */
  readonly digest: string;
  /** By path in the artifact: the bytes, or the absolute path of the file with them. */
  readonly files: ReadonlyMap<string, FileSource>;
  /** Warnings about the source, one line each. */
  readonly warnings: readonly string[];
}

export interface PythonBuildOptions {
  /** The interpreter whose version the service is for. Default: that of its environment, or `python3`. */
  readonly named: string | undefined;
  /** The folder of the virtual environment that is active in the shell. */
  readonly activeEnvironment: string | undefined;
  /** The packages become a part of the artifact. */
  readonly vendor: boolean;
  /** Packages that are built from their sources here, which runs their code; they are vendored. */
  readonly fromSource: readonly string[];
  /** The program uv. Default: it is fetched. */
  readonly uv: string | undefined;
  /** Where environments and downloads are kept for the next build. */
  readonly cacheFolder: string;
  /** Folders of programs, as `PATH` has them. */
  readonly searchPath: string;
  /** Where packages come from; see `runUv`. */
  readonly env: NodeJS.ProcessEnv;
}

/** How long a service may take to load when it is built: as long as on a node. */
export const PROBE_READY_TIMEOUT_MS = 120_000;
