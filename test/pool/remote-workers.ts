/**
 * Starts workers on another machine, for tests: an agent in this process, joined over a socket to
 * the node's side of WorkerService. What a platform has around it, such as tokens and the storage
 * of leases, is left out.
 */
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { createServer } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { createContextValues } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { afterAll } from "vitest";
import { WorkerService } from "../../gen/tessera/v1/worker_pb.js";
import { runAgent } from "../../src/agent/agent.ts";
import { AgentArtifacts } from "../../src/agent/artifacts.ts";
import { AgentModels } from "../../src/agent/models.ts";
import type { AgentMachine } from "../../src/agent/service.ts";
import { SessionNotes } from "../../src/agent/session-notes.ts";
import type { JoinedDeployment } from "../../src/api/worker/register.ts";
import { workerService } from "../../src/api/worker/worker.ts";
import type { BuiltArtifact } from "../../src/artifacts/build-options.ts";
import { openFile } from "../../src/artifacts/pack.ts";
import { setPrincipal, type TokenPrincipal } from "../../src/auth/principal.ts";
import { NO_ACCESS } from "../../src/auth/token-rules.ts";
import { ScratchFolders } from "../../src/deployments/scratch.ts";
import type { Log } from "../../src/log/log.ts";
import { GpuLedger } from "../../src/pool/gpus/ledger.ts";
import { JoinedWorkers } from "../../src/pool/joined-workers.ts";
import { DEFAULT_LIMITS } from "../../src/pool/limits.ts";
import type { RemoteWorker } from "../../src/pool/remote/remote-worker.ts";
import type { WorkerOptions } from "../../src/pool/worker-options.ts";
import { createIdSource } from "../../src/tasks/id.ts";
import { localFiles, ownFolder } from "../storage/files/local.ts";
import { files } from "./local-workers.ts";
import type { ContractSkip, StartWorker } from "./worker-contract.ts";

/** That of a platform. */
const SILENCE_MS = 15_000;

const TOKEN: TokenPrincipal = {
  kind: "token",
  tokenId: "t",
  generation: 1,
  tokenKind: "organization",
  tokenName: "workers",
  organizationId: "o",
  organization: "acme",
  access: {
    ...NO_ACCESS,
    worker: true,
  },
  allDeployments: true,
  deployments: [],
  expiresAtMs: Number.POSITIVE_INFINITY,
  allowedNetworks: [],
  user: undefined,
};

/** Where a worker on another machine is not as one on this machine, and why. */
export const REMOTE_SKIPS: readonly ContractSkip[] = [
  {
    reason: "its agent starts the process again and the worker stays joined, without slots",
    tests: [
      "that refuses its service says why, and goes by itself",
      "that exits while it loads refuses its service",
      "whose service cannot say whether it is ready says why, and goes by itself",
      "that is killed while it loads is told as lost",
      "displaces calls that begin after its end, and uses nothing",
      "is known as crashed, killed or unresponsive by its end",
    ],
  },
  {
    reason: "its agent has one service",
    tests: [
      "takes no calls before its service says that it is ready",
      "gets no calls while its service says that it is not ready",
    ],
  },
  {
    reason: "it goes on without its node, which ends: see test/e2e/workers/adoption.test.ts",
    tests: ["that exits while it stops loses the call that it had left"],
  },
];

export interface RemoteWorkers {
  readonly start: StartWorker;
  /** Resolves with the reason when the process that runs a worker's calls has ended. */
  processEnded(worker: unknown): Promise<string>;
}

/** Workers of one artifact. `launch` says how the agents start its processes. */
export function remoteWorkers(
  built: () => Promise<BuiltArtifact>,
  launch: Pick<AgentMachine, "launchOf" | "environments">,
): RemoteWorkers {
  const ended = new WeakMap<object, Promise<string>>();
  const agents: Promise<void>[] = [];
  const folder = ownFolder();
  const scratch = new ScratchFolders();
  const silent: Log = { debug() {}, info() {}, warn() {}, error() {} };
  mkdirSync(join(folder, "artifacts"));
  const artifacts = new AgentArtifacts({ folder: join(folder, "artifacts"), log: silent });
  const models = new AgentModels({ folder: join(folder, "models"), maxBytes: 0, log: silent });
  const started = Promise.all([artifacts.start(), models.start()]);
  afterAll(async () => {
    await Promise.all(agents);
    await artifacts[Symbol.asyncDispose]();
    scratch.removeAll();
  });
  return {
    async start(_fixture, options = {}) {
      await started;
      const node = await NodeEnd.start(await built(), { ...options, silenceMs: SILENCE_MS });
      const leave = new AbortController();
      const exit = Promise.withResolvers<string>();
      const tell = (fields: object, message: string): void => {
        if ("reason" in fields && message.startsWith("the process of the service")) {
          exit.resolve(String(fields.reason));
        }
      };
      const machine: AgentMachine = {
        ...{
          artifacts,
          models,
          scratch,
          layers: undefined,
          images: undefined,
          pythonUnavailable: "it has no Python",
          ...launch,
        },
        ...{ gpus: new GpuLedger(), caches: { of: () => undefined }, allowedEgress: undefined },
        log: { ...silent, info: tell, warn: tell },
      };
      const joining = runAgent(
        {
          ...{ url: node.url, token: "secret", deployment: "contract", labels: {}, workers: 1 },
          ...{ machine, local: localFiles(folder).task, version: "1", platform: "here" },
          notes: new SessionNotes(
            join(folder, "sessions"),
            { url: node.url, deployment: "contract" },
            silent,
          ),
          ...{ pythons: [], now: () => performance.now(), onJoined() {} },
        },
        leave.signal,
      );
      const worker = await Promise.race([
        node.ready,
        joining.then(() => {
          throw new Error("the agent left before it had joined");
        }),
      ]);
      // It would join anew.
      void worker.exited.then(() => leave.abort());
      agents.push(joining.finally(() => node[Symbol.asyncDispose]()));
      ended.set(worker, exit.promise);
      return worker;
    },
    processEnded: (worker) => ended.get(worker as object) as Promise<string>,
  };
}

interface NodeEndOptions extends Partial<WorkerOptions> {
  /** After this silence a worker is lost. */
  readonly silenceMs: number;
}

/** The node's side of WorkerService, with one deployment. */
export class NodeEnd implements AsyncDisposable {
  readonly #ready = Promise.withResolvers<RemoteWorker>();
  readonly #server;
  readonly #sockets = new Set<Socket>();

  static async start(built: BuiltArtifact, options: NodeEndOptions): Promise<NodeEnd> {
    const node = new NodeEnd(built, options);
    node.#server.listen(0, "127.0.0.1");
    await once(node.#server, "listening");
    return node;
  }

  private constructor(built: BuiltArtifact, options: NodeEndOptions) {
    const deployment = this.#deployment(built, options);
    const located = {
      facts: {
        deploymentId: "d",
        organizationId: "o",
        organization: "acme",
        name: "contract",
        authorization: false,
      },
      deployment: () => deployment,
    };
    const service = workerService({
      directory: { find: () => located },
      // No worker comes here from another node.
      storage: { adoptLease: async () => undefined, closeLease: async () => [] },
      artifactOf: () => ({ index: built.index, openFile: (file) => openFile(built, file) }),
      accounts: { recordAuditEvent: async () => {} },
      newId: createIdSource(),
      now: Date.now,
      silenceMs: options.silenceMs,
      hosting: {
        getIndex: async () => undefined,
        listArtifactFiles: async () => [],
        listDrained: async () => [],
      },
      changes: { listen: () => () => {} },
      log: { debug() {}, info() {}, warn() {}, error() {} },
      blobs: { read: () => Readable.from([]) },
    });
    this.#server = createServer(
      connectNodeAdapter({
        routes: (router) => router.service(WorkerService, service),
        contextValues: () => setPrincipal(createContextValues(), TOKEN),
      }),
    );
    this.#server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The worker that has joined, once its slots are known. */
  get ready(): Promise<RemoteWorker> {
    return this.#ready.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const socket of this.#sockets) {
      socket.destroy();
    }
    await closed;
  }

  #deployment({ index }: BuiltArtifact, options: Partial<WorkerOptions>): JoinedDeployment {
    const manifest = index.service;
    let count = 0;
    let joined: RemoteWorker | undefined;
    const look = (): void => {
      if (joined && manifest.endpoints.some((each) => (joined?.freeSlots(each) ?? 0) > 0)) {
        this.#ready.resolve(joined);
      }
    };
    const workers = new JoinedWorkers({ onReady: async () => {}, onExit() {}, onCapacity: look });
    const { graceMs = 200, limits = DEFAULT_LIMITS, onOutput, countsOf } = options;
    return {
      manifest,
      service: {
        servicePath: index.entry ?? "",
        code: "",
        revision: { number: 1, env: {}, limits, network: { access: "open", hosts: [] } },
      },
      joining: {
        remote: {
          ...{ graceMs, readyTimeoutMs: 30_000, maxResultBytes: 1_000_000 },
          ...{ maxFileBytes: 1_000_000, keepers: files, onCapacity: look },
          newId: () => {
            count += 1;
            return `remote-${count}`;
          },
          countsOf: () => countsOf ?? (() => ({ take: () => undefined, end() {} })),
          onOutput: (line, { stream }) => onOutput?.(line, stream),
        },
        join: async (worker) => {
          joined = worker;
          await workers.add(worker);
          return [];
        },
      },
    };
  }
}
