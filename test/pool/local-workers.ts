/** Starts workers on this machine by a launch, for tests. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { bundleService } from "../../src/artifacts/bundle.ts";
import { workerRights } from "../../src/deployments/permissions.ts";
import type { Launch } from "../../src/pool/launch/launch.ts";
import { LocalWorker } from "../../src/pool/local-worker.ts";
import type { ServiceCode } from "../../src/pool/worker-options.ts";
import { localFiles } from "../storage/files/local.ts";
import { servicePath } from "../worker/process.ts";
import type { StartWorker } from "./worker-contract.ts";

/** What keeps the files of the calls. */
export const files = localFiles();

/** Each has a scratch folder of its own, which goes with it. */
export function startLocal(
  launch: Launch | undefined,
  open: (path: string) => Promise<ServiceCode> = bundleService,
): StartWorker {
  let count = 0;
  return async (fixture, options) => {
    const service = await open(servicePath(fixture));
    const folder = mkdtempSync(join(tmpdir(), "tessera-worker-test-"));
    const scratchFolder = realpathSync(folder);
    count += 1;
    const worker = new LocalWorker(
      `worker-${count}`,
      {
        service,
        scratchFolder,
        rights: workerRights({ ...service, scratchFolder }),
        launch,
        env: {},
        maxResultBytes: 1_000_000,
        maxFileBytes: 1_000_000,
        keepers: files,
        graceMs: 200,
        readyTimeoutMs: 30_000,
        onSpawn() {},
        onOutput() {},
        onFault: (err) => expect.unreachable(String(err)),
        ...options,
      },
      () => {},
    );
    void worker.outputEnded.then(() => rmSync(folder, { recursive: true, force: true }));
    return worker;
  };
}
