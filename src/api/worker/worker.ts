/** WorkerService: workers on other machines. */
import { Code, type ServiceImpl } from "@connectrpc/connect";
import type { TunnelRequest, WorkerService } from "../../../gen/tessera/v1/worker_pb.js";
import { problem } from "../../errors.ts";
import { Tunnel } from "../../pool/remote/tunnel.ts";
import { readBlob, writeBlob } from "./blobs.ts";
import { workerToken } from "./caller.ts";
import { DrainedMachines, type DrainedMachinesOptions } from "./drained.ts";
import { HandedSecrets, type HandedSecretsOptions } from "./handed-secrets.ts";
import { ModelFiles, type ModelFilesOptions } from "./model-files.ts";
import { type RegisterOptions, register } from "./register.ts";
import { WorkerSessions } from "./remote-sessions.ts";
import { report } from "./report.ts";
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

// Tunnel: one connection to a mounted server at a worker.

/** How long a worker has to say which connection it brings. */
const HEADER_TIMEOUT_MS = 10_000;

function tunnel(sessions: WorkerSessions): ServiceImpl<typeof WorkerService>["tunnel"] {
  return async function* (requests, ctx) {
    const principal = workerToken(ctx.values);
    const messages = requests[Symbol.asyncIterator]();
    const first = await firstOf(messages);
    if (first?.header === undefined) {
      throw problem("REQUEST_INVALID", "the first message of Tunnel has to have a header");
    }
    const { session, id } = first.header;
    const { worker } = sessions.get(session, principal);
    const connection = new Tunnel(dataOf(first, messages), worker.turns);
    // Nobody may listen yet, and its end is that of the call.
    connection.on("error", () => {});
    const leave = (): void => {
      connection.destroy(new Error("the worker ended the connection"));
    };
    ctx.signal.addEventListener("abort", leave);
    try {
      if (!worker.takeTunnel(Number(id), connection)) {
        throw problem("REQUEST_INVALID", "nobody waits for this connection", {
          code: Code.NotFound,
        });
      }
      yield* connection.frames();
    } finally {
      ctx.signal.removeEventListener("abort", leave);
      connection.destroy();
    }
  };
}

/** The first message. Throws where it does not come. */
async function firstOf(messages: AsyncIterator<TunnelRequest>): Promise<TunnelRequest | undefined> {
  const { promise, reject } = Promise.withResolvers<never>();
  const late = problem("REQUEST_INVALID", "the first message of Tunnel did not come within 10 s");
  const timer = setTimeout(() => reject(late), HEADER_TIMEOUT_MS);
  try {
    const { done, value } = await Promise.race([messages.next(), promise]);
    return done === true ? undefined : value;
  } finally {
    clearTimeout(timer);
  }
}

async function* dataOf(
  { data: began }: TunnelRequest,
  rest: AsyncIterator<TunnelRequest>,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield began;
  for await (const { header, data } of { [Symbol.asyncIterator]: () => rest }) {
    if (header !== undefined) {
      throw problem("REQUEST_INVALID", "a further message of Tunnel has a header");
    }
    yield data;
  }
}
