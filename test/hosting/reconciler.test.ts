import { afterEach, expect, it, vi } from "vitest";
import { EnvironmentError } from "../../src/artifacts/environments/environment.ts";
import type { Deployment } from "../../src/deployments/deployment.ts";
import type { HeldArtifact } from "../../src/hosting/artifact-cache.ts";
import { LastServed } from "../../src/hosting/last-served.ts";
import { releaseLater } from "../../src/hosting/preparation.ts";
import { Reconciler } from "../../src/hosting/reconciler.ts";
import type { ServiceManifest } from "../../src/protocol/manifest.ts";
import type { DesiredDeployment } from "../../src/storage/hosting/revisions.ts";
import { endpoint, manifestOf } from "../service/manifests.ts";
import { TestFolder } from "../storage/sqlite/databases.ts";

const STOPPED = {
  deploymentId: "d",
  organizationId: "o",
  organization: "acme",
  name: "echo",
  desiredState: "stopped",
  targetRevision: 1,
  digest: "a".repeat(64),
  version: 1,
  settings: {
    memoryMib: 64,
    cpu: 1,
    env: {},
    network: { access: "open", hosts: [] },
    requires: {},
    place: "any",
  },
} as unknown as DesiredDeployment;

/** No revision here has any. */
const NO_MODELS = { hold: () => Promise.reject(new Error("there are no models")) };

/** None is stored. */
const NO_MANIFESTS = {
  maySleep: () => false,
  read: async () => undefined,
  note: async () => {},
};

afterEach(() => void vi.useRealTimers());

it("goes on with what it brings when it is told the same again, also while it is stopped", async () => {
  using folder = new TestFolder();
  const held: string[] = [];
  const gate = Promise.withResolvers<HeldArtifact>();
  let changes = 0;
  const resident = new Reconciler(STOPPED, {
    hold(_, digest) {
      held.push(digest);
      return gate.promise;
    },
    variables: async () => ({ env: {}, secrets: [] }),
    environments: undefined,
    layers: undefined,
    images: undefined,
    caches: { of: () => undefined },
    models: NO_MODELS,
    labels: {},
    gpus: { list: [] },
    onProgress: () => {},
    open: () => expect.unreachable("nothing can be opened before it is there"),
    servedByOthers: async () => undefined,
    served: new LastServed(folder.path),
    manifests: NO_MANIFESTS,
    asleep: () => expect.unreachable("nothing may sleep without a manifest"),
    shareOf: () => ({ min: 0, max: 1, nodes: 1, queueTimeMs: 1_000 }),
    log: { debug() {}, info() {}, warn() {}, error() {} },
    onChange: () => {
      changes += 1;
    },
  });
  await expect.poll(() => held.length).toBe(1);
  resident.want({ ...STOPPED });
  resident.want({ ...STOPPED });
  await new Promise((resolve) => setImmediate(resolve));
  expect([held.length, changes]).toEqual([1, 0]);
  resident.want({ ...STOPPED, desiredState: "running" });
  await expect.poll(() => held.length).toBe(2);
  const ended = resident.end(0);
  gate.reject(new Error("the test has ended"));
  await ended;
});

it("reports a failure until something else is wanted, and tries again what is started anew", async () => {
  using folder = new TestFolder();
  const held: string[] = [];
  const running = { ...STOPPED, desiredState: "running" } as const;
  const never = new Promise<HeldArtifact>(() => {});
  await using resident = new Reconciler(running, {
    hold(_, digest) {
      held.push(digest);
      return digest === running.digest ? Promise.reject(new Error("its files are gone")) : never;
    },
    variables: async () => ({ env: {}, secrets: [] }),
    environments: undefined,
    layers: undefined,
    images: undefined,
    caches: { of: () => undefined },
    models: NO_MODELS,
    labels: {},
    gpus: { list: [] },
    onProgress: () => {},
    open: () => expect.unreachable("nothing can be opened before it is there"),
    servedByOthers: async () => undefined,
    served: new LastServed(folder.path),
    manifests: NO_MANIFESTS,
    asleep: () => expect.unreachable("nothing may sleep without a manifest"),
    shareOf: () => ({ min: 0, max: 1, nodes: 1, queueTimeMs: 1_000 }),
    log: { debug() {}, info() {}, warn() {}, error() {} },
    onChange: () => {},
  });
  const report = () => {
    const { status, reason, targetRevision } = resident.report();
    return [status, reason, targetRevision];
  };
  const failed = ["failed", "revision 1 could not start: its files are gone", 1];
  await expect.poll(report).toEqual(failed);
  resident.want({ ...running });
  expect(report()).toEqual(failed);
  resident.want(STOPPED);
  expect(report()).toEqual(["stopped", "", 1]);
  await expect.poll(() => held.length).toBe(1);
  resident.want(running);
  expect(report()).toEqual(["starting", "revision 1 is starting", 1]);
  await expect.poll(report).toEqual(failed);
  expect(held.length).toBe(2);
  resident.want({ ...running, version: 2 });
  expect(resident.report().version).toBe(2);
  resident.want({ ...running, version: 3, targetRevision: 2, digest: "b".repeat(64) });
  expect(report()).toEqual(["starting", "revision 2 is starting", 2]);
});

it.each([
  ["tries again what failed", false, 8],
  ["tries once what is at fault by itself, until it is started anew", true, 1],
])("%s", async (_, isFinal, times) => {
  using folder = new TestFolder();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  let tried = 0;
  const running = { ...STOPPED, desiredState: "running" } as const;
  await using resident = new Reconciler(running, {
    hold() {
      tried += 1;
      return Promise.reject(new EnvironmentError("LOCK_INVALID", "it is no lock", { isFinal }));
    },
    variables: async () => ({ env: {}, secrets: [] }),
    environments: undefined,
    layers: undefined,
    images: undefined,
    caches: { of: () => undefined },
    models: NO_MODELS,
    labels: {},
    gpus: { list: [] },
    onProgress: () => {},
    open: () => expect.unreachable("nothing can be opened before it is there"),
    servedByOthers: async () => undefined,
    served: new LastServed(folder.path),
    manifests: NO_MANIFESTS,
    asleep: () => expect.unreachable("nothing may sleep without a manifest"),
    shareOf: () => ({ min: 0, max: 1, nodes: 1, queueTimeMs: 1_000 }),
    log: { debug() {}, info() {}, warn() {}, error() {} },
    onChange: () => {},
  });
  const failed = () => vi.waitFor(() => expect(resident.report().status).toBe("failed"));
  await failed();
  // It looks into the folder between the tries.
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  while (tried < times) {
    await vi.advanceTimersToNextTimerAsync();
    await turn();
  }
  await vi.advanceTimersByTimeAsync(isFinal ? 40 * 60_000 : 0);
  for (let turns = 0; turns < 200; turns += 1) {
    await turn();
  }
  expect(resident.report().reason).toContain("it is no lock");
  expect(tried).toBeGreaterThanOrEqual(times);
  expect(isFinal ? tried : 1).toBe(1);
  resident.want(STOPPED);
  resident.want(running);
  const before = tried;
  await vi.waitFor(() => expect(tried).toBeGreaterThan(before));
});

it.each([
  ["the longest of its calls", { endpoints: [{ timeoutMs: 1_000 }, { timeoutMs: 90_000 }] }, 90],
  ["the last answers of its server", { endpoints: [], mounts: [{}] }, 300],
  [
    "the last request to its server that is a task",
    { endpoints: [{ timeoutMs: 1_000 }], mounts: [{}, { queue: { timeoutMs: 600_000 } }] },
    900,
  ],
])("keeps the files of a replaced revision for %s, and a minute", (_, service, seconds) => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const release = vi.fn();
  releaseLater({ index: { service }, release } as unknown as HeldArtifact);
  vi.advanceTimersByTime((seconds + 60) * 1_000 - 1);
  expect(release).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(release).toHaveBeenCalledOnce();
});

/** A revision whose code is what its number says. */
function revision(targetRevision: number): DesiredDeployment {
  const digest = `${targetRevision}`.repeat(64);
  return { ...STOPPED, desiredState: "running", targetRevision, digest, version: targetRevision };
}

/** A node where manifests are stored: of all revisions, or of those that `has` says. */
function withManifests(
  record: DesiredDeployment,
  { folder, has = () => true, sleeps = false, ...others }: ManifestOptions,
) {
  const did: string[] = [];
  const served = new LastServed(folder.path);
  const manifest = { name: "echo", endpoints: [] };
  const index = { service: manifest, files: [] };
  const resident = new Reconciler({ ...record, manifest: {} } as unknown as DesiredDeployment, {
    hold: async (_, digest) => ({ index, digest, release() {} }) as unknown as HeldArtifact,
    variables: async () => ({ env: {}, secrets: [] }),
    environments: undefined,
    layers: undefined,
    images: undefined,
    caches: { of: () => undefined },
    models: NO_MODELS,
    labels: {},
    gpus: { list: [] },
    onProgress: () => {},
    open: () =>
      ({
        resume: ({ revision }) => did.push(`resume ${revision?.number}`),
        deploy: async ({ revision }) => {
          did.push(`deploy ${revision?.number}`);
          throw new Error("it is broken");
        },
        stay() {},
        async drain() {},
        async [Symbol.asyncDispose]() {},
      }) as Partial<Deployment> as Deployment,
    servedByOthers: async () => undefined,
    served,
    manifests: {
      maySleep: ({ targetRevision = 0 }) => sleeps && has(targetRevision),
      read: async ({ targetRevision = 0 }) => (has(targetRevision) ? manifest : undefined),
      note: async () => {},
    },
    asleep: ({ targetRevision }) => {
      did.push(`asleep ${targetRevision}`);
      return { [Symbol.dispose]: () => void did.push(`no longer ${targetRevision}`) };
    },
    shareOf: () => ({ min: 0, max: 1, nodes: 1, queueTimeMs: 1_000 }),
    log: { debug() {}, info() {}, warn() {}, error() {} },
    onChange: () => {},
    ...others,
  });
  return { resident, served, did };
}

interface ManifestOptions extends Partial<ConstructorParameters<typeof Reconciler>[1]> {
  readonly folder: TestFolder;
  readonly has?: (revision: number) => boolean;
  readonly sleeps?: boolean;
}

it.each([
  ["serves", false],
  ["sleeps", true],
])(
  "goes back to what %s by a stored manifest where the next revision is broken",
  async (_, sleeps) => {
    using folder = new TestFolder();
    await new LastServed(folder.path).set("d", { revision: 1, digest: "1".repeat(64) });
    {
      const before = withManifests(revision(2), { folder, sleeps });
      await using _resident = before.resident;
      await before.resident.resumed;
      expect(before.did).toEqual([sleeps ? "asleep 2" : "resume 2"]);
      expect(await before.served.get("d")).toEqual({ revision: 2, digest: "2".repeat(64) });
    }
    const { resident, did } = withManifests(revision(3), { folder, sleeps, has: () => false });
    await using _resident = resident;
    await expect.poll(() => did).toEqual(["resume 2", "deploy 3"]);
  },
);

it("sleeps on by the newest revision that may sleep, and stands in by it for one that may not", async () => {
  using folder = new TestFolder();
  const has = (number: number) => number < 3;
  const { resident, did } = withManifests(revision(1), { folder, has, sleeps: true });
  await using _resident = resident;
  await resident.resumed;
  resident.want(revision(2));
  const report = () => [resident.report().status, resident.report().revision];
  await expect.poll(report).toEqual(["ready", 2]);
  expect(did).toEqual(["asleep 1", "no longer 1", "asleep 2"]);
  resident.want(revision(3));
  await expect.poll(() => did.slice(3)).toEqual(["resume 2", "no longer 2", "deploy 3"]);
});

it("begins anew what it brings when its machine is drained meanwhile", async () => {
  using folder = new TestFolder();
  const did: string[] = [];
  const machine = { isDrained: false };
  const started = Promise.withResolvers<void>();
  const index = { service: manifestOf(endpoint({ name: "say" })), files: [] };
  const deployment = {
    resume: ({ revision: code }) =>
      void did.push(`awaits ${[...(code?.awaits?.endpoints.keys() ?? [])]}`),
    deploy: (_, signal) => {
      did.push("starts a worker");
      started.resolve();
      return new Promise((_resolve, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason));
      });
    },
    stay() {},
    async drain() {},
    async [Symbol.asyncDispose]() {},
  } as Partial<Deployment> as Deployment;
  const { resident } = withManifests(revision(1), {
    folder,
    has: () => false,
    hold: async () => ({ index, readCode: "", release() {} }) as unknown as HeldArtifact,
    isDrained: () => machine.isDrained,
    open: () => deployment,
  });
  await using _resident = resident;
  await started.promise;
  machine.isDrained = true;
  resident.drainChanged();
  await expect.poll(() => did).toEqual(["starts a worker", "awaits say"]);
});

it("reads again what a manifest was asked for in vain while it is asleep", async () => {
  using folder = new TestFolder();
  const manifest = manifestOf(endpoint({ name: "say" }));
  let reads = 0;
  const { resident } = withManifests(revision(1), {
    folder,
    manifests: {
      maySleep: () => true,
      async read() {
        reads += 1;
        return reads === 1 ? Promise.reject(new Error("the database is gone")) : manifest;
      },
      note: async () => {},
    },
  });
  await using _resident = resident;
  await resident.resumed;
  await expect(resident.manifestAsleep()).rejects.toThrow("the database is gone");
  expect(await resident.manifestAsleep()).toBe(manifest);
  expect(await resident.manifestAsleep()).toBe(manifest);
  expect(reads).toBe(2);
});

it("keeps the manifest that its worker has told when the machine is drained", async () => {
  using folder = new TestFolder();
  const did: string[] = [];
  const machine = { isDrained: false };
  const built = manifestOf(endpoint({ name: "say" }));
  const manifest = manifestOf(endpoint({ name: "say" }), endpoint({ name: "by-variable" }));
  const named = ({ endpoints }: ServiceManifest) => `${endpoints.map(({ name }) => name)}`;
  const deployment = {
    manifest,
    async deploy() {
      did.push("starts a worker");
      return manifest;
    },
    resume: (_, service) => void did.push(`goes on with ${named(service)}`),
    stay() {},
    async drain() {},
    async [Symbol.asyncDispose]() {},
  } as Partial<Deployment> as Deployment;
  const index = { service: built, files: [] };
  const { resident } = withManifests(revision(1), {
    folder,
    has: () => false,
    hold: async () => ({ index, readCode: "", release() {} }) as unknown as HeldArtifact,
    isDrained: () => machine.isDrained,
    open: () => deployment,
  });
  await using _resident = resident;
  await expect.poll(() => resident.isOpen).toBe(true);
  machine.isDrained = true;
  resident.drainChanged();
  await expect.poll(() => did).toEqual(["starts a worker", "goes on with say,by-variable"]);
  // Other variables may make other endpoints.
  resident.want({ ...revision(1), version: 2, settings: { ...STOPPED.settings, env: { A: "1" } } });
  await expect.poll(() => did.slice(2)).toEqual(["goes on with say"]);
});
