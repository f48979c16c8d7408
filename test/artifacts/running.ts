/** Builds, packs and unpacks a service, and calls it in a worker that may read nothing else. */
import { chmod, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildArtifact } from "../../src/artifacts/build.ts";
import type { BuildOptions } from "../../src/artifacts/build-options.ts";
import { packArtifact } from "../../src/artifacts/pack.ts";
import { unpackArtifact } from "../../src/artifacts/unpack.ts";
import { workerRights } from "../../src/deployments/permissions.ts";
import { ServiceProcess } from "../../src/pool/process.ts";
import {
  type CallResult,
  type FileValue,
  unpackPayload,
  type WorkerMessage,
} from "../../src/protocol/messages.ts";

const LIMITS = { maxResultBytes: 1e6, maxFileBytes: 1e6 };

/** What a call of an endpoint of the artifact answers. */
export async function callBuilt(
  path: string,
  endpoint: string,
  { json = "{}", files = [], edit, ...options }: BuildOptions & CallArguments = {},
) {
  const built = await buildArtifact(path, options);
  const temporary = await realpath(await mkdtemp(join(tmpdir(), "tessera-test-run-")));
  try {
    await packArtifact(built, join(temporary, "packed"));
    const folder = join(temporary, "artifact");
    await unpackArtifact(join(temporary, "packed"), folder, { digest: built.digest });
    if (edit !== undefined) {
      const path = join(folder, "service.js");
      const code = await readFile(path, "utf8");
      await chmod(path, 0o600);
      await writeFile(path, edit(code));
    }
    const result = await call(folder, join(temporary, "scratch"), { endpoint, json, files });
    return { built, folder, result };
  } finally {
    await rm(temporary, { recursive: true });
  }
}

interface CallArguments {
  readonly json?: string;
  readonly files?: readonly FileValue[];
  /** Changes the code between unpacking and loading. */
  readonly edit?: (code: string) => string;
}

async function call(
  folder: string,
  scratchFolder: string,
  { endpoint, ...payload }: Required<Omit<CallArguments, "edit">> & { readonly endpoint: string },
): Promise<CallResult> {
  await mkdir(scratchFolder);
  const servicePath = join(folder, "service.js");
  const answer = Promise.withResolvers<CallResult>();
  const access = { read: [], addons: true, threads: false, processes: false, env: {} };
  const worker = new ServiceProcess({
    rights: workerRights({ servicePath, selfContained: true, scratchFolder }, access),
    scratchFolder,
    env: {},
    maxMessageBytes: 1e7,
    onMessage: (message) => receive(message),
    onOutput: () => {},
    onFault: (err) => answer.reject(err),
  });
  const receive = (message: WorkerMessage): void => {
    if (message.type === "ready") {
      const common = { id: 1, taskId: "1", attempt: 1, deadlineMs: Date.now() + 60_000 };
      worker.send({ type: "calls", calls: [{ ...common, endpoint, arguments: payload }] });
    } else if (message.type === "results" && message.results[0]) {
      answer.resolve(message.results[0]);
    } else if (message.type === "refused") {
      answer.reject(new Error(message.message));
    }
  };
  void worker.exited.then(({ message }) => answer.reject(new Error(message)));
  try {
    worker.send({
      type: "load",
      servicePath,
      code: await readFile(servicePath, "utf8"),
      ...LIMITS,
      scratchFolder,
    });
    return await answer.promise;
  } finally {
    worker.kill("the test is over");
    await worker.exited;
  }
}

/** The value of a result that is JSON; throws the failure. */
export function resultValue(result: CallResult): unknown {
  if ("failure" in result) {
    throw new Error(result.failure.message);
  }
  return JSON.parse(unpackPayload(result.result).json);
}
