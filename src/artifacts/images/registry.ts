/**
 * Registries of container images, which skopeo speaks to: it pins what a tag means now to a digest,
 * and fetches an image by it. It runs in the kernel's sandbox. The address of every host that it
 * connects to, of redirects too, is judged by the egress policy; certificates are verified.
 */
import { hash } from "node:crypto";
import { existsSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseAddress } from "../../collections/networks.ts";
import { EgressPolicy } from "../../pool/egress/policy.ts";
import { type FindUpstream, upstreamProxies } from "../../pool/egress/upstream.ts";
import { findProgram, type KernelSandbox } from "../../pool/sandbox/sandbox.ts";
import { type ImageName, parseImage } from "../../protocol/image.ts";
import { EnvironmentError, OversizedError } from "../environments/environment.ts";
import type { DownloadFolders, ImageLayer } from "./downloads.ts";
import { runIsolated } from "./isolated.ts";
import { digestIn } from "./layout.ts";
import { ownArchitecture, type PinnedImage } from "./lock.ts";

/** How long a registry may take to say what an image is. */
const PIN_TIMEOUT_MS = 60_000;
/** How long it may take to give all of it, over a slow connection. */
const FETCH_TIMEOUT_MS = 60 * 60_000;
/** Silence of a registry after which a connection is closed. */
const REGISTRY_IDLE_TIMEOUT_MS = 30_000;
/** Manifests of a list: one for each platform, and what describes each. */
const MAX_LISTED_MANIFESTS = 1_000;
/** Layers of an image: Docker makes at most 127. */
const MAX_IMAGE_LAYERS = 1_000;
/** Characters of a complaint that an error shows. */
const MAX_SHOWN_CHARACTERS = 500;

/** What skopeo says when a registry has it wait for 5 s or more, as it does up to five times. */
const LONG_WAIT = /Too many requests to \S+: sleeping for (?:[5-9]|\d{2,})\./;

/** The operator's part of skopeo's options: certificates, and credentials of registries. */
const PASSED = ["SSL_CERT_FILE", "SSL_CERT_DIR", "REGISTRY_AUTH_FILE"];

export interface RegistryOptions {
  readonly sandbox: KernelSandbox;
  /** Folders of programs, as `PATH` has them. */
  readonly searchPath: string;
  /** Of this, skopeo gets what `PASSED` names; the proxies in it are used for it. */
  readonly env: NodeJS.ProcessEnv;
  /** Host rules of the operator: registries that are not public. */
  readonly allowed: readonly string[];
  /** Default: 30 s. */
  readonly idleMs?: number;
}

export class Registry {
  readonly #options: RegistryOptions;

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  /** What an image is now, for the architecture of this machine. Rejects with an `EnvironmentError`. */
  async pin(image: string, signal?: AbortSignal): Promise<PinnedImage> {
    const named = parseImage(image);
    if (named === undefined) {
      throw refused(`${JSON.stringify(image.slice(0, 100))} is no name of a container image`);
    }
    const folder = mkdtempSync(join(realpathSync(tmpdir()), "tessera-pin-"));
    try {
      return await this.#pin(named, { folder, signal, timeoutMs: PIN_TIMEOUT_MS });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  async #pin(image: ImageName, run: RunOptions): Promise<PinnedImage> {
    const { name, tag } = image;
    const inspect = async (reference: string, ...flags: string[]): Promise<Buffer> =>
      await this.#skopeo(image, ["inspect", ...flags, `docker://${name}${reference}`], run);
    const given = await inspect(
      image.digest === undefined ? `:${tag}` : `@sha256:${image.digest}`,
      "--raw",
    );
    const own = hash("sha256", given, "hex");
    if (image.digest !== undefined && image.digest !== own) {
      throw invalid(`${image.registry} gives another content than the digest of ${name} says`);
    }
    const manifest = parse(given, name);
    const digest = Array.isArray(manifest.manifests)
      ? listed(manifest.manifests.slice(0, MAX_LISTED_MANIFESTS), name)
      : own;
    const text = digest === own ? given : await inspect(`@sha256:${digest}`, "--raw");
    const size = bytesOf(layersIn(text, { ...image, digest }));
    const config = parse(await inspect(`@sha256:${digest}`, "--config", "--raw"), name);
    const { os, architecture } = config;
    if (os !== "linux" || architecture !== ownArchitecture()) {
      throw otherArchitecture(name, [`${String(os)}/${String(architecture)}`]);
    }
    return { name, digest, architecture: ownArchitecture(), size };
  }

  /** The layers of an image, in their order. Rejects with an `EnvironmentError`. */
  async layers(
    { name, digest }: PinnedImage,
    { folder, signal }: Omit<RunOptions, "timeoutMs">,
  ): Promise<readonly ImageLayer[]> {
    const image = pinnedName(name, digest);
    const args = ["inspect", "--raw", `docker://${name}@sha256:${digest}`];
    const text = await this.#skopeo(image, args, { folder, signal, timeoutMs: PIN_TIMEOUT_MS });
    return layersIn(text, { ...image, digest });
  }

  /** Fetches an image into a layout with the tag `image`, all but the blobs that are there. */
  async fetch(
    { name, digest }: PinnedImage,
    { own, layout, blobs }: DownloadFolders,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const args = [
      ...["copy", "--quiet", "--dest-oci-accept-uncompressed-layers"],
      ...["--dest-shared-blob-dir", blobs],
      ...[`docker://${name}@sha256:${digest}`, `oci:${layout}:image`],
    ];
    const run = { folder: own, around: blobs, signal, timeoutMs: FETCH_TIMEOUT_MS };
    await this.#skopeo(pinnedName(name, digest), args, run);
  }

  /** Its output. Rejects with an `EnvironmentError` that has its complaint. */
  async #skopeo(
    { registry, name }: ImageName,
    args: readonly string[],
    { folder, around, signal, timeoutMs }: RunOptions,
  ): Promise<Buffer> {
    const { sandbox, searchPath, env, allowed, idleMs = REGISTRY_IDLE_TIMEOUT_MS } = this.#options;
    const passed = Object.fromEntries(
      PASSED.flatMap((each) => (env[each] === undefined ? [] : [[each, env[each]]])),
    );
    const loopback = loopbackOf(registry, allowed);
    const end = await runIsolated({
      sandbox,
      program: toolPath("skopeo", searchPath),
      args: [
        // It says nowhere else that a registry has it wait, for minutes.
        "--debug",
        ...["--override-os", "linux", "--override-arch", ownArchitecture()],
        // What signatures the operator asks for holds here, too.
        ...(existsSync("/etc/containers/policy.json") ? [] : ["--insecure-policy"]),
        ...args,
      ],
      folder,
      ...(around !== undefined && { around }),
      read: ["/etc/containers", ...Object.values(passed).flatMap((path) => path.split(":"))],
      env: passed,
      timeoutMs,
      // With layers on their way it may wait, within its hour.
      ...(around === undefined && { endAt: LONG_WAIT }),
      signal,
      network: { allowed, idleMs, loopback, upstream: proxiesOf(env) },
    });
    if (end.code !== 0) {
      throw explained(complaintOf(end.stderr), { ...end, registry, name });
    }
    return end.stdout;
  }
}

/**
 * A registry on the machine's own loopback, with its port; undefined for another one. Throws an
 * `EnvironmentError` where the operator does not allow it: skopeo would not ask a proxy for it.
 */
function loopbackOf(registry: string, allowed: readonly string[]): string | undefined {
  const [, host, digits = "443"] = /^(localhost|127\.[0-9.]+)(?::(\d+))?$/.exec(registry) ?? [];
  if (host === undefined) {
    return undefined;
  }
  const port = Number(digits);
  const policy = EgressPolicy.ofPlatform(allowed);
  const address = parseAddress(host === "localhost" ? "127.0.0.1" : host);
  const fault = address && policy.addressFault({ host, port }, address);
  if (fault !== undefined) {
    throw unavailable(`its image is not fetched: ${fault}`);
  }
  return `${host}:${port}`;
}

/** The operator's proxies. Throws an `EnvironmentError`. */
function proxiesOf(env: NodeJS.ProcessEnv): FindUpstream | undefined {
  try {
    return upstreamProxies(env);
  } catch (err) {
    throw unavailable(`its image is not fetched: ${(err as Error).message}`);
  }
}

interface RunOptions {
  /** The folder in which it works. */
  readonly folder: string;
  /** A folder around that, all of which it may write. Default: none. */
  readonly around?: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** The path of a program that images need. Throws an `EnvironmentError` that says what to install. */
export function toolPath(name: "skopeo" | "umoci", searchPath: string): string {
  const found = findProgram(name, searchPath);
  if (found === undefined) {
    throw new EnvironmentError(
      "ENVIRONMENT_UNAVAILABLE",
      `its image (image) is fetched by skopeo and unpacked by umoci, and this machine has no ${name}: its operator installs the packages skopeo and umoci, or the service does without`,
    );
  }
  return found;
}

type Json = { readonly [member: string]: unknown };

function parse(text: Buffer, name: string): Json {
  try {
    const value: unknown = JSON.parse(text.toString());
    if (typeof value === "object" && value !== null) {
      return value as Json;
    }
  } catch {
    // Said below.
  }
  throw refused(`the registry gives a manifest of ${name} that is not valid`);
}

/** The digest in a list of manifests that is for this machine. */
function listed(manifests: readonly unknown[], name: string): string {
  const all = manifests.map((each) => {
    const { digest, platform } = (each ?? {}) as Json;
    const { os, architecture } = (platform ?? {}) as Json;
    return { digest: String(digest), os: String(os), architecture: String(architecture) };
  });
  const found = all.find(
    ({ os, architecture }) => os === "linux" && architecture === ownArchitecture(),
  );
  const [, digest] = /^sha256:([0-9a-f]{64})$/.exec(found?.digest ?? "") ?? [];
  if (digest === undefined) {
    throw otherArchitecture(
      name,
      all.flatMap(({ os, architecture }) => (os === "unknown" ? [] : `${os}/${architecture}`)),
    );
  }
  return digest;
}

interface ExpectedManifest {
  readonly registry: string;
  readonly name: string;
  /** SHA-256, in hex. */
  readonly digest: string;
}

/** The layers in the text of a manifest, which is of its digest. Throws an `EnvironmentError`. */
function layersIn(text: Buffer, { registry, name, digest }: ExpectedManifest): ImageLayer[] {
  if (hash("sha256", text, "hex") !== digest) {
    throw invalid(`${registry} gives another content than the digest of ${name} says`);
  }
  const { layers } = parse(text, name);
  if (!Array.isArray(layers) || layers.length > MAX_IMAGE_LAYERS) {
    throw unread(name);
  }
  return layers.map((each) => {
    const { size, mediaType, urls } = (each ?? {}) as Json;
    if (!Number.isSafeInteger(size) || Number(size) < 0) {
      throw unread(name);
    }
    if (urls !== undefined || /foreign|nondistributable/.test(String(mediaType))) {
      throw refused(`${name} has a layer that its registry does not give: build it without`);
    }
    return { digest: digestIn(each), size: Number(size) };
  });
}

/** What these layers are to download. */
function bytesOf(layers: readonly ImageLayer[]): number {
  return layers.reduce((sum, { size }) => sum + size, 0);
}

function unread(name: string): EnvironmentError {
  return refused(
    `${name} is no image that is read here, but an older format, or something else that a registry keeps: build it again with a current tool`,
  );
}

/** The name of a pinned image. Throws an `EnvironmentError` for other text. */
function pinnedName(name: string, digest: string): ImageName {
  const image = parseImage(`${name}@sha256:${digest}`);
  if (image === undefined) {
    throw refused(`${name} is no name of a container image`);
  }
  return image;
}

/** What skopeo complained of, without passwords in addresses. */
function complaintOf(stderr: string): string {
  const lines = [...stderr.matchAll(/level=(?:fatal|error) msg=("(?:[^"\\]|\\.)*"|\S+)/g)];
  if (lines.length === 0 && LONG_WAIT.test(stderr)) {
    return "too many requests";
  }
  const others = stderr.replaceAll(/^.*level=(?:debug|info|warning) .*$/gm, "").trim();
  const [, said = JSON.stringify(others)] = lines.at(-1) ?? [];
  let text: string;
  try {
    text = String(JSON.parse(said));
  } catch {
    text = said;
  }
  return text.replaceAll(/\/\/[^/@\s]+@/g, "//").slice(0, MAX_SHOWN_CHARACTERS);
}

interface Failure {
  readonly registry: string;
  readonly name: string;
  readonly refusal: string | undefined;
  readonly isLate: boolean;
}

function explained(
  complaint: string,
  { registry, name, refusal, isLate }: Failure,
): EnvironmentError {
  if (refusal !== undefined) {
    return unavailable(`its image is not fetched: ${refusal}`);
  }
  if (isLate || /\bEOF\b|connection reset|timeout|deadline/i.test(complaint)) {
    return unavailable(`the registry ${registry} does not answer: ${complaint || "it is silent"}`);
  }
  // What the egress proxy answers.
  if (/Bad Gateway/.test(complaint)) {
    return unavailable(
      `the registry ${registry} cannot be reached: its name has no address, or nobody listens there`,
    );
  }
  if (/toomanyrequests|too many requests|status:? 429/i.test(complaint)) {
    return unavailable(
      `the registry ${registry} takes no more requests now (429): try again later, or ask the operator for credentials (REGISTRY_AUTH_FILE) or a mirror`,
    );
  }
  if (/manifest unknown|name unknown|not found/i.test(complaint)) {
    return invalid(`the registry ${registry} has no ${name} of this tag or digest: ${complaint}`);
  }
  if (/unauthorized|authentication required|access .*denied/i.test(complaint)) {
    return unavailable(
      `the registry ${registry} gives ${name} to nobody without credentials, or has none: ask the operator of the platform (REGISTRY_AUTH_FILE): ${complaint}`,
    );
  }
  if (/does not match|digest mismatch|did not match|verification/i.test(complaint)) {
    return invalid(
      `the registry ${registry} gives another content than the digest of ${name} says: ${complaint}`,
    );
  }
  if (/no space left on device/i.test(complaint)) {
    return new OversizedError("the disk is full: no image is fetched");
  }
  return unavailable(`its image ${name} cannot be fetched: ${complaint}`);
}

function otherArchitecture(name: string, there: readonly string[]): EnvironmentError {
  const are = there.length === 0 ? "nothing that is named" : [...new Set(there)].join(", ");
  return refused(
    `the image ${name} is for ${are.slice(0, MAX_SHOWN_CHARACTERS)}, and the machine that runs it is linux/${ownArchitecture()}: build it for that`,
  );
}

/** What a registry has may be another tomorrow, so that it is tried again. */
function invalid(message: string): EnvironmentError {
  return new EnvironmentError("LOCK_INVALID", message);
}

function refused(message: string): EnvironmentError {
  return new EnvironmentError("LOCK_INVALID", message, { isFinal: true });
}

function unavailable(message: string): EnvironmentError {
  return new EnvironmentError("ENVIRONMENT_UNAVAILABLE", message);
}
