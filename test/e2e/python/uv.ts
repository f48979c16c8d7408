/** What the tests of environments are made with: uv from the registry, fetched once into the checkout. */
import { readdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import type { PythonBuildOptions } from "../../../src/artifacts/build-options.ts";
import {
  findInterpreters,
  type PythonInterpreter,
} from "../../../src/artifacts/environments/interpreters.ts";
import { findUv } from "../../../src/artifacts/environments/uv.ts";
import { currentPlatform } from "../../../src/artifacts/platform.ts";
import { ROOT } from "../clients/python-environment.ts";

export interface Tools {
  readonly interpreter: PythonInterpreter;
  /** The path of uv. */
  readonly uv: string;
}

export async function tools(): Promise<Tools> {
  const [interpreter] = await findInterpreters([], process.env.PATH ?? "");
  if (interpreter === undefined) {
    throw new Error("there is no Python");
  }
  const folder = join(realpathSync(join(ROOT, "node_modules")), ".cache/python");
  const platform = currentPlatform();
  return { interpreter, uv: await findUv({ folder, platform, interpreter, env: process.env }) };
}

/** How an artifact is built with these tools; what uv fetches is kept for the next run. */
export function buildOptions(
  { interpreter, uv }: Tools,
  env: NodeJS.ProcessEnv = process.env,
): PythonBuildOptions {
  return {
    named: interpreter.path,
    activeEnvironment: undefined,
    vendor: false,
    fromSource: [],
    uv,
    cacheFolder: join(ROOT, "node_modules/.cache/builds"),
    searchPath: process.env.PATH ?? "",
    env,
  };
}

/** The variables of this process that uv needs, with a package index of the test's own. */
export function indexEnv(url: string): Record<string, string> {
  return {
    ...Object.fromEntries(
      Object.entries(process.env).flatMap(([name, value = ""]) =>
        /^(?:UV|PIP|SSL)_|^(?:HOME|PATH)$|_PROXY$/i.test(name) ? [[name, value]] : [],
      ),
    ),
    UV_INDEX: url,
    UV_HTTP_RETRIES: "0",
  };
}

/** The environments below a data folder. */
export function environmentsIn(data: string): string[] {
  return readdirSync(join(data, "environments")).filter((name) => /^[0-9a-f]{64}/.test(name));
}
