/** The environment of `tessera build` and `tessera deploy`, for services in Python. */
import { cacheFolderOf } from "./cloud.ts";

interface BuildEnvironment {
  /** `VIRTUAL_ENV`: the virtual environment that is active in the shell. */
  readonly activeEnvironment: string | undefined;
  /** `TESSERA_UV`: the program uv; undefined: it is fetched. */
  readonly uv: string | undefined;
  /** Kept for the next build: `$XDG_CACHE_HOME/tessera` or `~/.cache/tessera`. */
  readonly cacheFolder: string;
  /** `PATH`. */
  readonly searchPath: string;
  /** Where packages come from: the variables of pip and uv. */
  readonly env: NodeJS.ProcessEnv;
}

/** Reads the environment of a build. */
export function readBuildEnvironment(env: NodeJS.ProcessEnv): BuildEnvironment {
  return Object.freeze({
    activeEnvironment: env.VIRTUAL_ENV || undefined,
    uv: env.TESSERA_UV || undefined,
    cacheFolder: cacheFolderOf(env),
    searchPath: env.PATH ?? "",
    env,
  });
}
