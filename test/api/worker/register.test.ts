/** What a machine gets that registers while a deployment or its database changes. */
import { create } from "@bufbuild/protobuf";
import { createContextValues, type HandlerContext } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { RegisterRequestSchema } from "../../../gen/tessera/v1/worker_pb.js";
import { DrainedMachines } from "../../../src/api/worker/drained.ts";
import {
  type JoinedDeployment,
  type RegisterOptions,
  register,
} from "../../../src/api/worker/register.ts";
import { type WorkerSession, WorkerSessions } from "../../../src/api/worker/remote-sessions.ts";
import type { Forgotten } from "../../../src/auth/change-feed.ts";
import { setPrincipal, type TokenPrincipal } from "../../../src/auth/principal.ts";
import { NO_ACCESS } from "../../../src/auth/token-rules.ts";
import { JoinedWorkers } from "../../../src/pool/joined-workers.ts";
import { DEFAULT_LIMITS } from "../../../src/pool/limits.ts";
import type { RemoteWorker } from "../../../src/pool/remote/remote-worker.ts";
import type { ServiceManifest } from "../../../src/protocol/manifest.ts";
import type { DrainedMachine } from "../../../src/storage/hosting/machines.ts";

const ORGANIZATION = { organizationId: "o", organization: "acme" };

function tokenOf(role: "admin" | "member"): TokenPrincipal {
  return {
    ...{
      kind: "token",
      tokenId: "t",
      tokenKind: "personal",
      tokenName: "w",
      generation: 1,
      ...ORGANIZATION,
    },
    access: {
      ...NO_ACCESS,
      worker: true,
    },
    ...{ allDeployments: true, deployments: [], allowedNetworks: [] },
    expiresAtMs: Number.POSITIVE_INFINITY,
    user: { userId: "u", email: "m@example.com", role } as TokenPrincipal["user"],
  };
}

const manifest = { endpoints: [] } as unknown as ServiceManifest;

function revisionOf(number: number, env: Readonly<Record<string, string>>) {
  return {
    ...{ servicePath: "", code: "" },
    revision: {
      ...{ number, env, secrets: Object.keys(env), limits: DEFAULT_LIMITS },
      network: { access: "open", hosts: [] },
    },
  } as unknown as NonNullable<JoinedDeployment["service"]>;
}

/** A node with one deployment, and what happens while a machine registers. */
class Node {
  service = revisionOf(1, {});
  readonly joined: RemoteWorker[] = [];
  readonly sessions = new WorkerSessions();
  meanwhile: () => void = () => {};
  note: RegisterOptions["handed"]["note"] = async () => {};
  readonly #workers = new JoinedWorkers({
    onReady: async () => {},
    onExit() {},
    onCapacity() {},
  });

  register(role: "admin" | "member") {
    const node = this;
    const deployment: JoinedDeployment = {
      manifest,
      get service() {
        return node.service;
      },
      joining: {
        remote: {
          ...{ graceMs: 0, readyTimeoutMs: 0, maxResultBytes: 0, maxFileBytes: 0 },
          ...{ keepers: {} as never, onCapacity() {}, newId: () => "w", onOutput() {} },
          countsOf: () => () => ({ take: () => undefined, end() {} }),
        },
        join: async (worker) => {
          node.joined.push(worker);
          await node.#workers.add(worker);
          return [];
        },
      },
    };
    const facts = { deploymentId: "d", ...ORGANIZATION, name: "echo", authorization: true };
    const handle = register({
      directory: { find: () => ({ facts, deployment: () => deployment }) },
      storage: {
        adoptLease: async () => {
          this.meanwhile();
          return [];
        },
        closeLease: async () => [],
      },
      handed: { note: (handing) => this.note(handing) },
      sessions: this.sessions,
      drained: { apply: async () => {} },
      artifactOf: () => ({ index: { files: [{}] } }) as never,
      now: () => 0,
      silenceMs: 1_000,
    });
    const request = create(RegisterRequestSchema, {
      ...{ deployment: "echo", protocolMin: 1, protocolMax: 1, resumeSession: "lease.secret" },
      code: { case: "manifestJson", value: JSON.stringify(manifest) },
    });
    const values = setPrincipal(createContextValues(), tokenOf(role));
    return handle(request, { values } as HandlerContext);
  }
}

it("a machine is given what its token was asked for, though another revision takes over", async () => {
  const node = new Node();
  node.meanwhile = () => {
    node.service = revisionOf(2, { API_KEY: "of the production" });
  };
  const { settings, revision } = (await node.register("member")) as {
    readonly settings: { readonly env: object };
    readonly revision: number;
  };
  expect([settings.env, revision]).toEqual([{}, 1]);
  expect(node.joined.map((worker) => worker.revision)).toEqual([1]);
  for (const worker of node.joined) {
    worker.kill("the test is over");
  }
  await expect(node.register("member")).rejects.toThrow("API_KEY");
});

it("a worker that joins while its machine is drained takes no calls, whichever read ends first", async () => {
  const reads: PromiseWithResolvers<DrainedMachine[]>[] = [];
  let change: (forgotten: readonly Forgotten[]) => void = () => {};
  const said: boolean[] = [];
  const worker = {
    machine: { hostname: "gpu-1" },
    drained: (isDrained: boolean) => said.push(isDrained),
  };
  const session = { organizationId: "o", worker } as unknown as WorkerSession;
  const drained = new DrainedMachines({
    hosting: {
      listDrained: () => {
        const read = Promise.withResolvers<DrainedMachine[]>();
        reads.push(read);
        return read.promise;
      },
    },
    changes: {
      listen: (listener) => {
        change = listener;
        return () => {};
      },
    },
    sessions: { of: () => [session] },
    log: { debug() {}, info() {}, warn() {}, error() {} },
  });
  const joining = drained.apply(session);
  change([{ kind: "organization", id: "o" }]);
  reads[1]?.resolve([{ machine: "gpu-1", drainedAtMs: 1, drainedBy: "ada@example.com" }]);
  await expect.poll(() => said).toEqual([true]);
  reads[0]?.resolve([]);
  await joining;
  expect(said).toEqual([true]);
});

it("a machine whose secrets cannot be noted takes no place", async () => {
  const node = new Node();
  node.service = revisionOf(1, { API_KEY: "of the production" });
  node.note = () => Promise.reject(new Error("the database does not answer"));
  for (let count = 0; count < 2_000; count += 1) {
    await expect(node.register("admin")).rejects.toThrow("the database does not answer");
  }
});
