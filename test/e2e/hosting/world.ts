/** A platform in this process, and what a developer and callers do with it. */
import { readFile, symlink, writeFile } from "node:fs/promises";
import { type Agent, request as httpRequest } from "node:http";
import { dirname, join } from "node:path";
import { text as readText } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { buildArtifact } from "../../../src/artifacts/build.ts";
import type { BuiltArtifact } from "../../../src/artifacts/build-options.ts";
import { type IndexedFile, writeIndex } from "../../../src/artifacts/index-file.ts";
import { openFile } from "../../../src/artifacts/pack.ts";
import {
  type CreateRevisionRequestSchema,
  createTesseraClient,
  type Deployment,
  DeploymentStatus,
  type TesseraClient,
} from "../../../src/client/index.ts";
import { bearer, Folder, type Platform, type PlatformOptions, start } from "../start/platform.ts";

const SERVICES = fileURLToPath(new URL("services/", import.meta.url));

/** The most that one message of an upload may bring. */
const MAX_CHUNK_BYTES = 256 * 1024;

/** The calls of the `echo` service that a protected deployment refuses without a token. */
export const CALLS = [
  ["POST", "/say"],
  ["POST", "/work/submit"],
  ["GET", "/work/status?task_id=x"],
  ["GET", "/work/get?task_id=x"],
  ["POST", "/work/cancel?task_id=x"],
  ["PUT", "/work/retry?task_id=x"],
  ["POST", "/work/access?task_id=x"],
  ["GET", "/work/events?task_id=x"],
  ["GET", "/schema.json"],
  ["GET", "/docs.json"],
  ["GET", "/api/v1/tasks"],
  ["PATCH", "/api/v1/tasks/x"],
  ["DELETE", "/api/v1/tasks/x"],
  ["GET", "/api/v1/endpoints"],
  ["POST", "/tessera.v1.EndpointService/CallEndpoint"],
] as const;

const built = new Map<string, Promise<BuiltArtifact>>();

/**
 * The artifact of `services/<name>.ts`, built once. With replacements, that of
 * a copy in which they were made.
 */
export function artifact(
  name = "echo",
  replacements: Readonly<Record<string, string>> = {},
): Promise<BuiltArtifact> {
  const key = JSON.stringify([name, replacements]);
  const known = built.get(key) ?? buildCopy(name, Object.entries(replacements));
  built.set(key, known);
  return known;
}

/** The same of a service that says in how many workers it runs. */
export async function declaring(workers: number): Promise<BuiltArtifact> {
  const built = await artifact();
  const { index } = built;
  return { ...built, index: { ...index, service: { ...index.service, workers } } };
}

async function buildCopy(
  name: string,
  replacements: readonly (readonly [string, string])[],
): Promise<BuiltArtifact> {
  const path = join(SERVICES, `${name}.ts`);
  if (replacements.length === 0) {
    return buildArtifact(path);
  }
  let source = await readFile(path, "utf8");
  for (const [from, to] of replacements) {
    source = source.replace(from, to);
  }
  using folder = new Folder();
  const copy = join(folder.path, `${name}.ts`);
  await writeFile(copy, source);
  const packages = join(dirname(SERVICES), "..", "..", "..", "node_modules");
  await symlink(packages, join(folder.path, "node_modules"));
  const artifact = await buildArtifact(copy);
  // The folder goes: what lies in it is read now.
  const files = new Map(artifact.files);
  for (const [path, source] of files) {
    if (typeof source === "string") {
      files.set(path, await readFile(source));
    }
  }
  return { ...artifact, files };
}

export type DeployOptions = Omit<
  MessageInitShape<typeof CreateRevisionRequestSchema>,
  "$typeName" | "index" | "deployment"
>;

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes, looked into by tests
  readonly json: any;
}

export class World implements AsyncDisposable {
  readonly platform: Platform;
  readonly folder: Folder;
  readonly client: TesseraClient;
  readonly cookie: Record<string, string>;

  /** A platform that is set up, on a folder of its own. */
  static async start(options: PlatformOptions = {}): Promise<World> {
    const folder = new Folder();
    const platform = await start(folder, options);
    const cookie = await platform.setUp();
    const { value } = await platform.createToken(cookie);
    return new World(platform, { folder, cookie, token: value });
  }

  constructor(
    platform: Platform,
    world: {
      readonly folder: Folder;
      readonly cookie: Record<string, string>;
      readonly token: string;
    },
  ) {
    this.platform = platform;
    this.folder = world.folder;
    this.cookie = world.cookie;
    this.client = createTesseraClient({ url: platform.url, token: world.token });
  }

  /** A client with a token that may call deployments besides: these, or all. */
  async callerClient(deployments?: readonly string[]): Promise<TesseraClient> {
    const { url } = this.platform;
    const { value: token } = await this.platform.createToken(this.cookie, {
      access: ["developer_operations", "protected_endpoint"],
      ...(deployments === undefined ? { all_deployments: true } : { deployments }),
    });
    return createTesseraClient({ url, token });
  }

  /** Uploads what is missing of an artifact, and makes it the next revision. */
  async deploy(
    name: string,
    artifact: BuiltArtifact,
    options: DeployOptions = {},
  ): Promise<Deployment> {
    await upload(this.client, artifact);
    return this.client.deployments.createRevision({
      ...options,
      deployment: name,
      index: Buffer.from(writeIndex(artifact.index)),
    });
  }

  /** The same, and waits until it is ready. */
  async deployed(
    name: string,
    artifact: BuiltArtifact,
    options: DeployOptions = {},
  ): Promise<Deployment> {
    await this.deploy(name, artifact, options);
    return this.until(name, ({ status }) => status === DeploymentStatus.READY);
  }

  /** The deployment, once it is so. */
  async until(name: string, isSo: (deployment: Deployment) => boolean): Promise<Deployment> {
    return until(
      () => this.client.deployments.getDeployment({ deployment: name }),
      isSo,
      ({ status, statusReason, revision }) => `${status} ${revision} ${statusReason}`,
    );
  }

  call(name: string, path: string, options: CallOptions = {}): Promise<Answer> {
    return call(this.platform, name, path, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.platform[Symbol.asyncDispose]();
    this.folder[Symbol.dispose]();
  }
}

/** Asks again and again until something is so; fails after 20 s. */
export async function until<Value>(
  ask: () => Promise<Value>,
  isSo: (value: Value) => boolean,
  describe: (value: Value) => string = (value) => inspect(value),
): Promise<Value> {
  const endMs = performance.now() + 20_000;
  for (;;) {
    const value = await ask();
    if (isSo(value)) {
      return value;
    }
    if (performance.now() > endMs) {
      throw new Error(`it did not become so: ${describe(value)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export async function upload(client: TesseraClient, artifact: BuiltArtifact): Promise<string[]> {
  const { files } = artifact.index;
  const all = files.map(({ sha256 }) => sha256);
  const { sha256: missing } = await client.deployments.findMissingFiles({ sha256: all });
  for (const digest of missing) {
    const file = files.find(({ sha256 }) => sha256 === digest);
    if (file) {
      await client.deployments.uploadFile(messages(file, openFile(artifact, file)));
    }
  }
  return missing;
}

/** An upload, as messages. */
export async function* messages(
  { sha256, size }: Pick<IndexedFile, "sha256" | "size">,
  chunks: AsyncIterable<Uint8Array>,
) {
  const header = { sha256, sizeBytes: BigInt(size) };
  yield { part: { case: "header" as const, value: header } };
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += MAX_CHUNK_BYTES) {
      const value = chunk.subarray(at, at + MAX_CHUNK_BYTES) as Uint8Array<ArrayBuffer>;
      yield { part: { case: "chunk" as const, value } };
    }
  }
}

export interface CallOptions {
  /** Posted as JSON. */
  readonly body?: object;
  readonly method?: string;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: the deployment's own. */
  readonly host?: string;
  /** Default: a connection for each call. */
  readonly agent?: Agent;
}

/** Calls a deployment of acme on its host, which resolves here. */
export async function call(
  platform: Pick<Platform, "started">,
  name: string,
  path: string,
  options: CallOptions = {},
): Promise<Answer> {
  const { body, token, host = `${name}.acme.apps.localhost:${platform.started.port}` } = options;
  const { method = body ? "POST" : "GET" } = options;
  return new Promise((resolve, reject) => {
    const req = httpRequest(
      {
        host: "127.0.0.1",
        port: platform.started.port,
        path,
        method,
        agent: options.agent ?? false,
        headers: {
          host,
          ...(body && { "content-type": "application/json" }),
          ...(token !== undefined && bearer(token)),
          ...options.headers,
        },
      },
      async (res) => {
        try {
          const text = await readText(res);
          const isJson = res.headers["content-type"]?.startsWith("application/json") ?? false;
          const json = isJson ? JSON.parse(text) : undefined;
          resolve({ status: res.statusCode ?? 0, headers: res.headers, text, json });
        } catch (err) {
          reject(err);
        }
      },
    );
    req.on("error", reject).end(body && JSON.stringify(body));
  });
}

/** The reason of an error's answer. */
export function reasonOf({ json }: Answer): string | undefined {
  return json?.details?.[0]?.debug?.reason;
}
