/** WorkerService: workers on other machines. */
import type { ServiceImpl } from "@connectrpc/connect";
import type { WorkerService } from "../../../gen/tessera/v1/worker_pb.js";
import { readBlob, writeBlob } from "./blobs.ts";
import { DrainedMachines, type DrainedMachinesOptions } from "./drained.ts";
import { HandedSecrets, type HandedSecretsOptions } from "./handed-secrets.ts";
import { ModelFiles, type ModelFilesOptions } from "./model-files.ts";
import { type RegisterOptions, register } from "./register.ts";
import { WorkerSessions } from "./remote-sessions.ts";
import { report } from "./report.ts";
import { tunnel } from "./tunnel.ts";
import { work } from "./work.ts";

export type WorkerServiceOptions = Omit<RegisterOptions, "sessions" | "handed" | "drained"> &
  Omit<DrainedMachinesOptions, "sessions"> &
  HandedSecretsOptions &
  ModelFilesOptions;

export function workerService(options: WorkerServiceOptions): ServiceImpl<typeof WorkerService> {
  const sessions = new WorkerSessions();
  const drained = new DrainedMachines({ ...options, sessions });
  return {
    register: register({ ...options, sessions, drained, handed: new HandedSecrets(options) }),
    work: work(sessions),
    report: report(sessions),
    readBlob: readBlob(sessions, new ModelFiles(options)),
    writeBlob: writeBlob(sessions),
    tunnel: tunnel(sessions),
  };
}
