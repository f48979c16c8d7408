/** Deployments of the platform as a node runs them, over a database in memory. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { pino } from "pino";
import { Deployment } from "../../../src/deployments/deployment.ts";
import type { DeploymentOptions } from "../../../src/deployments/options.ts";
import type { OutputSource } from "../../../src/deployments/workers.ts";
import type { GpuNeed } from "../../../src/pool/gpus/ledger.ts";
import { DEFAULT_LIMITS, type WorkerLimits } from "../../../src/pool/limits.ts";
import type { WorkerImage } from "../../../src/pool/sandbox/image.ts";
import type { ServiceCode } from "../../../src/pool/worker-options.ts";
import { Maintenance } from "../../../src/queue/maintenance/maintenance.ts";
import type { SubmissionOptions } from "../../../src/queue/submission.ts";
import { SqliteStorage } from "../../../src/storage/sqlite/storage.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { createIdSource } from "../../../src/tasks/id.ts";
import { isFinal } from "../../../src/tasks/task.ts";
import { localFiles } from "../../storage/files/local.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

export const RECORD = { deploymentId: "deployment-1", name: "acme/worker" };

const FILES = localFiles();

const LOG = pino({ level: "silent" });

export interface RevisionSettings extends Partial<WorkerLimits> {
  readonly env?: { readonly [name: string]: string };
  readonly platform?: string;
  readonly image?: WorkerImage;
  readonly gpus?: GpuNeed;
}

export class Hosting implements AsyncDisposable {
  readonly folder = mkdtempSync(join(realpathSync(tmpdir()), "tessera-hosting-test-"));
  readonly hosted: Deployment;
  readonly storage: Storage;
  readonly lines: (OutputSource & { readonly line: string })[] = [];
  readonly #maintenance: Maintenance;
  #revision = 0;

  private constructor(storage: Storage, options: Partial<DeploymentOptions>) {
    this.storage = storage;
    this.#maintenance = new Maintenance({ storage, notifier: undefined, log: LOG, now: Date.now });
    this.hosted = new Deployment({
      organization: "acme",
      record: RECORD,
      notifier: undefined,
      storage,
      maintenance: this.#maintenance,
      log: LOG,
      newId: createIdSource(),
      nodeId: "node",
      now: Date.now,
      workers: 1,
      graceMs: 200,
      readyTimeoutMs: 20_000,
      maxResultBytes: 1_000_000,
      maxFileBytes: 1_000_000,
      files: FILES,
      maxWaiting: 1_000,
      onOutput: (line, from) => this.lines.push({ line, ...from }),
      onReadiness: () => {},
      ...options,
    });
  }

  static async start(options: Partial<DeploymentOptions> = {}): Promise<Hosting> {
    const storage = new SqliteStorage(":memory:");
    await storage.start();
    const hosting = new Hosting(storage, options);
    await hosting.#maintenance.start();
    return hosting;
  }

  /** The next revision, from TypeScript source that may import zod. */
  async revision(source: string, settings: RevisionSettings = {}): Promise<ServiceCode> {
    this.#revision += 1;
    const { env = {}, platform, image, gpus, ...limits } = settings;
    return {
      servicePath: join(this.folder, "service.js"),
      code: await bundled({ stdin: { contents: source, resolveDir: ROOT, loader: "ts" } }),
      selfContained: true,
      revision: {
        number: this.#revision,
        env,
        limits: { ...DEFAULT_LIMITS, cpus: 2, ...limits },
        network: { access: "open", hosts: [] },
        ...(platform !== undefined && { platform }),
        ...(image !== undefined && { image }),
        ...(gpus !== undefined && { gpus }),
      },
    };
  }

  async deploy(source: string, settings: RevisionSettings = {}): Promise<void> {
    await this.hosted.deploy(await this.revision(source, settings));
  }

  /** The JSON that an api returns. */
  async call(endpoint: string, values: object = {}): Promise<unknown> {
    const { manifest, reader } = this.hosted.endpoint(endpoint);
    const { files } = this.hosted;
    const payload = await reader.read({ case: "arguments", value: values as never }, files.api);
    const { signal } = new AbortController();
    const result = await this.hosted.calls.call(manifest, payload, { signal });
    return JSON.parse(result.json);
  }

  async submit(
    endpoint: string,
    values: object = {},
    options: SubmissionOptions = {},
  ): Promise<string> {
    const { manifest, reader } = this.hosted.taskEndpoint(endpoint);
    const { files } = this.hosted;
    const payload = await reader.read({ case: "arguments", value: values as never }, files.task);
    return (await this.hosted.queue.submit(manifest, payload, options)).task.taskId;
  }

  /** The task with its result, when it has ended. */
  async ended(taskId: string, waitMs = 20_000) {
    const { task, result } = await this.hosted.tasks.result({ taskId, waitMs });
    return {
      status: isFinal(task.status) ? task.status : "unfinished",
      failure: task.failure,
      value: result && JSON.parse(result.json),
    };
  }

  /** What stands in the log of a task. */
  async logOf(taskId: string): Promise<string[]> {
    const key = { deploymentId: RECORD.deploymentId, taskId };
    const history = await this.storage.getHistory({ ...key, afterSequence: 0, limit: 1_000 });
    return (history?.stored ?? []).flatMap(({ body }) =>
      body.kind === "log" ? [body.message] : [],
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.hosted[Symbol.asyncDispose]();
    await this.#maintenance[Symbol.asyncDispose]();
    await this.storage[Symbol.asyncDispose]();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A module as an artifact has it: with its packages, without the SDK. */
export async function bundled(options: Parameters<typeof build>[0]): Promise<string> {
  const result = await build({
    bundle: true,
    write: false,
    format: "esm",
    platform: "node",
    logLevel: "silent",
    target: "node24",
    external: ["tessera-platform"],
    ...options,
  });
  return result.outputFiles?.[0]?.text ?? "";
}

/** Source of a service with these endpoints. */
export function source(endpoints: string, before = ""): string {
  return `import { api, service, task } from "tessera-platform"; import * as z from "zod"; ${before}
    export default service({ name: "anything", endpoints: { ${endpoints} } });`;
}
