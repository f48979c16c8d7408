/**
 * Resolves and downloads system packages by the machine's apt, from its sources and with its keys,
 * in a folder of our own: nothing of the machine is changed, and nothing needs root. apt is told
 * that nothing is installed, so that a lock is the same on all machines with these sources,
 * whatever else is installed on them.
 *
 *   <folder>/lists/     what the sources have, as of the last update
 *   <folder>/archives/  packages while they are downloaded, by their digest when they are complete
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, readdir, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { SharedBound } from "../../collections/shared-bound.ts";
import { faultOfSystemPackages } from "../../protocol/system-packages.ts";
import { Semaphore } from "../../time/semaphore.ts";
import { EnvironmentError, type EnvironmentProgress } from "../environments/environment.ts";
import { bytesOfLock, type LockedSystemPackage, readSystemLock, writeSystemLock } from "./lock.ts";

/** How long what the sources have is taken for the present. */
const LISTS_TTL_MS = 60 * 60_000;
/** An update, or a download of a few packages over a slow connection. */
const APT_TIMEOUT_MS = 15 * 60_000;
/** What is kept of its output: a line of some 200 characters for each package. */
const MAX_APT_OUTPUT_BYTES = 4 * 1024 ** 2;
/** How long a package is kept that was downloaded and is in no layer. */
const UNUSED_ARCHIVE_TTL_MS = 24 * 60 * 60_000;
/** Packages that one run of apt downloads: what it has when it is broken off is kept. */
const MAX_PACKAGES_PER_DOWNLOAD = 16;
/** Locks that are made one after the other; each takes a second or two. */
const MAX_WAITING_LOCKS = 16;
/** Lines of apt's complaints that an error shows. */
const MAX_SHOWN_LINES = 5;
const MEBIBYTE = 1024 ** 2;

/**
 * What packages take for granted, as every Debian has it, and therefore do not name: a shell and
 * the programs that scripts call.
 */
const TAKEN_FOR_GRANTED = ["dash", "coreutils", "sed", "grep"];

/**
 * They belong to the loader, which has one path in every program: the C library is that of the
 * machine, for the node's own programs and for those of packages alike.
 */
const OF_THE_MACHINE: readonly string[] = ["libc6", "libc-bin"];

/** Programs of its settings run as the node's user; they are about the machine's own folders. */
const CLEARED = [
  "APT::Update::Pre-Invoke",
  "APT::Update::Post-Invoke",
  "APT::Update::Post-Invoke-Success",
  "DPkg::Pre-Invoke",
  "DPkg::Post-Invoke",
  "DPkg::Pre-Install-Pkgs",
];

export interface AptOptions {
  /** Created if missing; its real path. */
  readonly folder: string;
  /** Folders of programs, as `PATH` has them. */
  readonly searchPath: string;
  /** Names the proxies, such as `http_proxy`. */
  readonly env: NodeJS.ProcessEnv;
  /** Settings of apt after those of the machine, in its format. Default: none. */
  readonly settings?: string;
  readonly now: () => number;
}

export interface LockOptions {
  /** Default: none, as where one person builds. */
  readonly organizationId?: string;
  readonly signal?: AbortSignal | undefined;
}

export class Apt {
  readonly #options: AptOptions;
  /** For what the sources have: apt locks its folders. */
  readonly #lists = new Semaphore(1);
  readonly #downloads = new Semaphore(1);
  readonly #waiting = new SharedBound(MAX_WAITING_LOCKS);

  constructor(options: AptOptions) {
    this.#options = options;
  }

  /**
   * The lock of packages with all that they need, for an organization. Rejects with an
   * `EnvironmentError` that names what there is not.
   */
  async lock(
    names: readonly string[],
    { organizationId = "", signal }: LockOptions = {},
  ): Promise<string> {
    const fault = faultOfSystemPackages(names);
    if (fault !== undefined) {
      throw new EnvironmentError("LOCK_INVALID", fault, { isFinal: true });
    }
    if (!this.#waiting.take(organizationId)) {
      throw new EnvironmentError(
        "ENVIRONMENT_UNAVAILABLE",
        `too many wait for their system packages to be locked (${this.#waiting.refusal(organizationId)}): try again later`,
      );
    }
    try {
      return await this.#lists.run(async () => {
        // Who has left does not hold up the others.
        signal?.throwIfAborted();
        return await this.#lock(names, signal);
      });
    } finally {
      this.#waiting.give(organizationId);
    }
  }

  async #lock(names: readonly string[], signal: AbortSignal | undefined): Promise<string> {
    await this.#update(LISTS_TTL_MS, signal);
    const wanted = [...TAKEN_FOR_GRANTED, ...names];
    const printed = await this.#run(
      ["install", "--print-uris", "--yes", "--quiet", "--", ...wanted],
      signal,
    );
    const packages = [...printed.matchAll(/^'[^']*' (\S+)\.deb (\d+) SHA256:([0-9a-f]{64})$/gm)];
    const locked = packages.flatMap(([, file = "", size = "", sha256 = ""]) => {
      const [name = "", version = "", architecture = ""] = file.split("_");
      return OF_THE_MACHINE.includes(name)
        ? []
        : [
            {
              name,
              version: decodeURIComponent(version),
              architecture,
              size: Number(size),
              sha256,
            },
          ];
    });
    const text = writeSystemLock(locked);
    readSystemLock(text);
    return text;
  }

  /**
   * Downloads the packages of a lock, and returns the file of each. Those that are there already
   * are not downloaded again. Rejects with an `EnvironmentError` when the sources have them no
   * longer, or others.
   */
  async download(
    packages: readonly LockedSystemPackage[],
    { signal, onProgress }: EnvironmentProgress = {},
  ): Promise<ReadonlyMap<LockedSystemPackage, string>> {
    return await this.#downloads.run(async () => {
      await this.#prepare();
      const archives = join(this.#options.folder, "archives");
      await this.#removeOld(archives);
      const there = new Set(await readdir(archives));
      const fileOf = ({ sha256 }: LockedSystemPackage): string => join(archives, `${sha256}.deb`);
      const missing = packages.filter(({ sha256 }) => !there.has(`${sha256}.deb`));
      const total = bytesOfLock(packages);
      let done = total - bytesOfLock(missing);
      const say = (): void =>
        onProgress?.(
          `installs system packages: ${Math.round(done / MEBIBYTE)} of ${Math.ceil(total / MEBIBYTE)} MiB`,
        );
      if (missing.length > 0) {
        await this.#lists.run(() => this.#update(LISTS_TTL_MS, signal));
      }
      for (let next = 0; next < missing.length; next += MAX_PACKAGES_PER_DOWNLOAD) {
        say();
        const some = missing.slice(next, next + MAX_PACKAGES_PER_DOWNLOAD);
        await this.#downloadSome(some, signal);
        for (const one of some) {
          await keepVerified(join(archives, fileNameOf(one)), fileOf(one), one);
        }
        done += bytesOfLock(some);
      }
      say();
      return new Map(packages.map((one) => [one, fileOf(one)]));
    });
  }

  /** Removes what was downloaded for a layer that was never made. */
  async #removeOld(archives: string): Promise<void> {
    for (const name of await readdir(archives)) {
      const { mtimeMs } = await stat(join(archives, name));
      if (name.endsWith(".deb") && this.#options.now() - mtimeMs > UNUSED_ARCHIVE_TTL_MS) {
        await rm(join(archives, name), { force: true });
      }
    }
  }

  async #downloadSome(
    packages: readonly LockedSystemPackage[],
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const releases = packages.map(({ name, version }) => `${name}=${version}`);
    const args = ["download", "--quiet", "--", ...releases];
    try {
      await this.#run(args, signal);
    } catch (err) {
      if (!(err instanceof EnvironmentError)) {
        throw err;
      }
      // The sources may have them since the last update.
      await this.#lists.run(() => this.#update(0, signal));
      await this.#run(args, signal).catch((cause) => {
        signal?.throwIfAborted();
        throw new EnvironmentError(
          "ENVIRONMENT_UNAVAILABLE",
          `${(cause as Error).message}: deploy it again, which locks what the sources of this machine have now, or ask the operator for sources that keep old versions, such as snapshot.debian.org`,
          { cause },
        );
      });
    }
  }

  /** Asks the sources what they have, unless that is known well enough. */
  async #update(ttlMs: number, signal: AbortSignal | undefined): Promise<void> {
    const { folder, now } = this.#options;
    await this.#prepare();
    const mark = join(folder, "updated");
    const { mtimeMs } = await stat(mark).catch(() => ({ mtimeMs: Number.NEGATIVE_INFINITY }));
    if (now() - mtimeMs >= ttlMs) {
      await this.#run(["update", "--quiet"], signal);
      await writeFile(mark, "");
    }
  }

  async #prepare(): Promise<void> {
    const { folder, settings = "" } = this.#options;
    for (const name of ["lists/partial", "archives/partial"]) {
      await mkdir(join(folder, name), { recursive: true, mode: 0o700 });
    }
    await writeFile(join(folder, "status"), "");
    await writeFile(
      join(folder, "apt.conf"),
      [
        ...CLEARED.map((name) => `#clear ${name};`),
        `Dir::State "${folder}";`,
        `Dir::State::lists "${folder}/lists";`,
        `Dir::State::status "${folder}/status";`,
        `Dir::Cache "${folder}";`,
        `Dir::Cache::archives "${folder}/archives";`,
        'APT::Sandbox::User "root";',
        'APT::Install-Recommends "false";',
        // What is no name of a package is not taken for a pattern of many.
        'APT::Cmd::Pattern-Only "true";',
        'Acquire::Languages "none";',
        'Acquire::ForceHash "SHA256";',
        'Acquire::Retries "3";',
        'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";',
        'Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";',
        settings,
      ].join("\n"),
    );
  }

  /** The output of apt-get. Rejects with an `EnvironmentError` that has its complaints. */
  async #run(args: readonly string[], signal: AbortSignal | undefined): Promise<string> {
    signal?.throwIfAborted();
    const { folder, searchPath, env } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    execFile(
      "apt-get",
      ["-c", join(folder, "apt.conf"), ...args],
      {
        cwd: join(folder, "archives"),
        env: {
          PATH: searchPath,
          LC_ALL: "C",
          DEBIAN_FRONTEND: "noninteractive",
          ...Object.fromEntries(
            Object.entries(env).filter(([name]) => /^(?:https?|no)_proxy$/i.test(name)),
          ),
        },
        timeout: APT_TIMEOUT_MS,
        maxBuffer: MAX_APT_OUTPUT_BYTES,
        ...(signal && { signal }),
      },
      (err, stdout, stderr) => {
        if (err === null) {
          resolve(stdout);
        } else {
          reject(signal?.aborted === true ? signal.reason : explained(err, stderr));
        }
      },
    );
    return await promise;
  }
}

/** The name that apt gives to the file of a package. */
function fileNameOf({ name, version, architecture }: LockedSystemPackage): string {
  return `${name}_${version.replaceAll(":", "%3a")}_${architecture}.deb`;
}

/** Keeps a downloaded package under the name of its digest. Rejects when it is another one. */
async function keepVerified(
  from: string,
  to: string,
  { name, version, sha256, size }: LockedSystemPackage,
): Promise<void> {
  const { size: found } = await stat(from);
  const digest = createHash("sha256");
  await pipeline(createReadStream(from), digest);
  if (found !== size || digest.digest("hex") !== sha256) {
    await rm(from, { force: true });
    throw new EnvironmentError(
      "LOCK_INVALID",
      `the sources of this machine have another ${name} ${version} than its lock names: deploy it again, which locks what they have now`,
    );
  }
  // apt gives it the time that its archive says.
  const time = new Date();
  await utimes(from, time, time);
  await rename(from, to);
}

function explained(err: Error & { readonly code?: unknown }, stderr: string): EnvironmentError {
  if (err.code === "ENOENT") {
    return new EnvironmentError(
      "ENVIRONMENT_UNAVAILABLE",
      "its system packages come from Debian's archive, and this machine has no apt: run it on Debian or Ubuntu, or in a container of theirs",
      { cause: err },
    );
  }
  const lines = stderr
    .replaceAll(/\/\/[^/@\s]+@/g, "//")
    .split("\n")
    .filter((line) => /^[EW]: /.test(line))
    .map((line) => line.slice("E: ".length))
    .slice(0, MAX_SHOWN_LINES);
  const isUnknown = /Unable to locate package|no installation candidate|was not found/.test(stderr);
  return new EnvironmentError(
    isUnknown ? "LOCK_INVALID" : "ENVIRONMENT_UNAVAILABLE",
    `apt does not find its system packages: ${lines.join("; ") || err.message.split("\n")[0]}`,
    { cause: err },
  );
}
