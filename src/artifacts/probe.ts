/**
 * The probe of an artifact: loads it as a node will, in a worker that may read only
 * the artifact. That proves that nothing is missing for loading the service, and
 * gives the service's manifest.
 */
import { readFile, realpath } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { workerRights } from "../deployments/permissions.ts";
import type { Launch, WorkerRights } from "../pool/launch/launch.ts";
import { notReadyAfter } from "../pool/limits.ts";
import { ServiceProcess } from "../pool/process.ts";
import type { WorkerImage } from "../pool/sandbox/image.ts";
import type { ServiceManifest } from "../protocol/manifest.ts";
import type { Probe, ServiceEntry, WorkerMessage } from "../protocol/messages.ts";
import { DEPLOY_ADVICE } from "../worker/permission-errors.ts";
import { ArtifactError } from "./artifact-error.ts";
import { ENTRY_NAME } from "./index-file.ts";

/** Last lines of a service's output that a failed build shows. */
const MAX_PROBE_OUTPUT_LINES = 20;
/**
 * Largest message of a worker that is started to read its manifest, which is all that it has
 * to say.
 */
const MAX_PROBE_MESSAGE_BYTES = 16 * 1024 ** 2;

export interface ProbeOptions {
  /** Limit of the time to load the service. */
  readonly readyTimeoutMs: number;
  /** The environment variables of the worker. */
  readonly env: { readonly [name: string]: string };
  /** The folder that the artifact's root was built from, for messages. */
  readonly root: string;
  /** The service's source file, for messages. */
  readonly source: string;
  /** Default: `import`. */
  readonly probe?: Probe | undefined;
  readonly signal?: AbortSignal;
}

/** What is probed: a service as a worker loads it. */
interface ProbedService {
  /** The path of its module in the folder of the artifact. */
  readonly servicePath: string;
  readonly code: string | ServiceEntry;
  /** The real path of the artifact's folder. */
  readonly folder: string;
  readonly rights: WorkerRights;
  /** How its worker starts. Default: in Node alone. */
  readonly launch?: Launch;
  /** What it has of a system, in a sandbox of the kernel. Default: nothing. */
  readonly system?: SystemFiles;
}

/** What a service has of a system besides the machine's libraries: its packages, or its image. */
export interface SystemFiles {
  readonly layer?: string;
  readonly image?: WorkerImage;
}

/** The service in Node that is in a folder. */
export async function nodeService(
  folder: string,
  { native, scratchFolder }: { readonly native: boolean; readonly scratchFolder: string },
): Promise<ProbedService & { readonly code: string }> {
  const real = await realpath(folder);
  const servicePath = join(real, ENTRY_NAME);
  const access = { read: [], addons: native, threads: false, processes: false, env: {} };
  return {
    servicePath,
    code: await readFile(servicePath, "utf8"),
    folder: real,
    rights: workerRights({ servicePath, selfContained: true, scratchFolder }, access),
  };
}

/** The manifest of a service. Rejects with an `ArtifactError` when it does not load. */
export async function probeService(
  { servicePath, code, folder, rights, launch, system }: ProbedService,
  scratchFolder: string,
  options: ProbeOptions,
): Promise<ServiceManifest> {
  const { readyTimeoutMs, env, signal } = options;
  const lines: string[] = [];
  const answer = Promise.withResolvers<WorkerMessage>();
  const worker = new ServiceProcess({
    rights,
    ...(launch && { launch }),
    ...system,
    scratchFolder,
    env,
    maxMessageBytes: MAX_PROBE_MESSAGE_BYTES,
    onMessage: (message) => {
      if (message.type === "ready" || message.type === "refused") {
        answer.resolve(message);
      }
    },
    onFault: answer.reject,
    onOutput: (line) => {
      lines.push(line);
      lines.splice(0, lines.length - MAX_PROBE_OUTPUT_LINES);
    },
  });
  const ended = worker.exited.then(({ message }): WorkerMessage => ({ type: "refused", message }));
  const timer = setTimeout(() => {
    worker.kill(notReadyAfter(readyTimeoutMs));
  }, readyTimeoutMs);
  const abort = (): void => worker.kill("it was broken off");
  signal?.addEventListener("abort", abort);
  if (signal?.aborted === true) {
    abort();
  }
  try {
    const limits = {
      maxResultBytes: MAX_PROBE_MESSAGE_BYTES,
      maxFileBytes: MAX_PROBE_MESSAGE_BYTES,
    };
    const isolated = typeof code === "object";
    const { probe = "import" } = options;
    worker.send({ type: "load", servicePath, code, ...limits, scratchFolder, isolated, probe });
    const message = await Promise.race([answer.promise, ended]);
    signal?.throwIfAborted();
    if (message.type === "ready") {
      return message.manifest;
    }
    // Its last lines may still be on their way.
    await ended;
    const fault = message.type === "refused" ? message.message : "it does not keep to the protocol";
    throw new ArtifactError(explain(fault, lines, { ...options, folder }));
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
    worker.kill("it has told what it is");
    await worker.exited;
  }
}

/** The message of a failed probe, with source paths instead of those of the temporary folder. */
function explain(
  fault: string,
  lines: readonly string[],
  { root, source, folder }: ProbeOptions & { readonly folder: string },
): string {
  const missing = missingFile(fault, folder);
  const advice =
    missing === undefined
      ? []
      : [
          `${missing} is not in the artifact, and the service needs it when it is loaded; if it is there ` +
            `in the source, --include ${relative(dirname(source), join(root, missing))} adds it`,
        ];
  // Options of `tessera serve` do not apply to deployments.
  const told = fault
    .replace(
      /; tessera serve --allow-read .+ allows it/,
      missing === undefined ? DEPLOY_ADVICE : "",
    )
    .replace(/; tessera serve --allow\S+(?: .+)? allows (?:it|them)/, "");
  const output =
    lines.length === 0 ? [] : ["the service wrote:", ...lines.map((line) => `  ${line}`)];
  return ["the service does not load from its artifact", told, ...advice, ...output]
    .join("\n")
    .replaceAll(`${folder}/${ENTRY_NAME}:`, `${ENTRY_NAME}:`)
    .replaceAll(`${folder}/${ENTRY_NAME}`, source)
    .replaceAll(`${folder}/`, `${root}/`);
}

/** The path in the artifact of a file that was not found. */
function missingFile(fault: string, folder: string): string | undefined {
  if (!/ENOENT|Cannot find|No such file/i.test(fault)) {
    return undefined;
  }
  for (const [, quoted, bare] of fault.matchAll(/'([^'\n]+)'|cannot find (\S+);/g)) {
    const path = quoted ?? bare ?? "";
    if (path.startsWith(`${folder}/`)) {
      return path.slice(folder.length + 1);
    }
  }
  return undefined;
}
