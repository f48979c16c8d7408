/**
 * Why a task is queued: situations that are staged with the real parts of a node, and what GetTask
 * answers in each, to anybody and to a member.
 */
import { create } from "@bufbuild/protobuf";
import { createContextValues, type HandlerContext } from "@connectrpc/connect";
import { afterEach, describe, expect, it } from "vitest";
import { GetTaskRequestSchema, QueuedCode } from "../../gen/tessera/v1/task_pb.js";
import { taskService } from "../../src/api/task/task.ts";
import { type Principal, setPrincipal } from "../../src/auth/principal.ts";
import type { Located } from "../../src/deployments/directory.ts";
import type { DeploymentOptions } from "../../src/deployments/options.ts";
import { awaitedWorkers } from "../../src/deployments/placement.ts";
import {
  NOTHING_HERE,
  type QueuedFacts,
  type QueuedReason,
  queuedReason,
} from "../../src/deployments/queued-reason.ts";
import { problem } from "../../src/errors.ts";
import type { HeldArtifact } from "../../src/hosting/artifact-cache.ts";
import { LastServed } from "../../src/hosting/last-served.ts";
import { Reconciler } from "../../src/hosting/reconciler.ts";
import type { Gpu } from "../../src/pool/gpus/gpus.ts";
import { GpuLedger } from "../../src/pool/gpus/ledger.ts";
import { launchAlone } from "../../src/pool/launch/alone.ts";
import { NodeBudget } from "../../src/pool/room/budget.ts";
import type { RoomNeed } from "../../src/pool/room/room.ts";
import { StartGate } from "../../src/pool/room/start-gate.ts";
import type { ServiceCode } from "../../src/pool/worker-options.ts";
import type { PlacementManifest } from "../../src/protocol/placement.ts";
import { setStanding } from "../../src/server/rpc/engine/standing.ts";
import { createLocate } from "../../src/server/rpc/interceptors/access.ts";
import { SCHEMAS } from "../../src/service/openapi/components.ts";
import type { MachineLabels } from "../../src/storage/deployment-settings.ts";
import type { DesiredDeployment } from "../../src/storage/hosting/revisions.ts";
import type { ReturnedAttempt, Task } from "../../src/tasks/task.ts";
import { session } from "../auth/principals.ts";
import { Hosting, type RevisionSettings, source } from "../e2e/deployments/hosting.ts";
import { endpoint, manifestOf } from "../service/manifests.ts";
import { TestFolder } from "../storage/sqlite/databases.ts";

const NOW_MS = Date.UTC(2026, 0, 31, 12);
const MEMBER = session("member");
const ANYBODY: Principal = { kind: "anonymous" };

const TASK = {
  deploymentId: "deployment-1",
  taskId: "task-1",
  endpoint: "work",
  status: "queued",
  ...{ priority: 0, createdAtMs: NOW_MS, runAtMs: NOW_MS, expiresAtMs: NOW_MS + 1_000_000 },
  ...{ attempt: 0, returned: [], failedAttempts: 0, lastSequence: 0 },
} as unknown as Task;

let stack = new AsyncDisposableStack();
afterEach(async () => {
  await stack.disposeAsync();
  stack = new AsyncDisposableStack();
});

/** Answers why a task is queued as GetTask does. */
type Why = (task: Task, position?: number) => QueuedReason;

async function told(
  why: Why,
  principal: Principal,
  { task = TASK, position, byAccess = false }: Asked = {},
): Promise<[string | undefined, string | undefined]> {
  const located: Located = {
    facts: {
      ...{ deploymentId: "deployment-1", organizationId: "acme-id" },
      ...{ organization: "acme", name: "worker", authorization: false },
    },
    deployment: () => expect.unreachable("the task is stored"),
    isReady: () => true,
    stored: () => ({
      name: "acme/worker",
      tasks: {
        get: async () => task,
        place: async () =>
          position === undefined ? undefined : { position, estimatedStartMs: undefined },
      },
    }),
    whyQueued: why,
  };
  const values = setPrincipal(createContextValues(), principal);
  if (byAccess) {
    setStanding(values, { identify: () => undefined });
  }
  const directory = { find: () => located, names: () => false };
  await createLocate(directory, { standalone: false })(values, { named: "", header: "" });
  const request = create(GetTaskRequestSchema, { taskId: task.taskId });
  const ctx = { values, signal: new AbortController().signal } as HandlerContext;
  const answer = await taskService.getTask?.(request, ctx);
  const { code, message } = answer?.queuedReason ?? {};
  return [code === undefined ? undefined : String(QueuedCode[code]), message];
}

interface Asked {
  readonly task?: Task;
  readonly position?: number;
  /** By the access of a task that a member has made. */
  readonly byAccess?: boolean;
}

const MANIFEST = manifestOf(endpoint({ name: "work", kind: "task" }));

/** A deployment that serves without a worker that has proved it. */
async function resumed(
  settings: RevisionSettings = {},
  options: Partial<DeploymentOptions> = {},
  change: (service: ServiceCode) => ServiceCode = (service) => service,
): Promise<Why & { readonly hosting: Hosting }> {
  const hosting = stack.use(
    await Hosting.start({ scale: { min: 0, max: 2 }, workers: 0, now: () => NOW_MS, ...options }),
  );
  hosting.hosted.resume(change(await hosting.revision("", settings)), MANIFEST);
  const why: Why = (task, position) => hosting.hosted.whyQueued(task, { position });
  return Object.assign(why, { hosting });
}

/** One whose workers this node may not start. */
function placed(endpoints: PlacementManifest, given: { gpus?: number; labels?: MachineLabels }) {
  const { gpus = 0, labels = {} } = given;
  const settings = { place: "any", requires: {}, gpus, gpuMemoryMib: 0 } as const;
  const service = manifestOf(endpoint({ name: "work", kind: "task", ...endpoints }));
  const about = { organization: "acme", name: "worker", settings };
  const awaits = awaitedWorkers(about, service, { labels, hasCode: true });
  return resumed({}, {}, (code) => ({
    ...code,
    revision: { ...(code.revision as NonNullable<ServiceCode["revision"]>), awaits },
  }));
}

const GPU: Gpu = {
  ...{ index: 0, uuid: "GPU-0", name: "NVIDIA L4", minor: 0 },
  ...{ memoryBytes: 24 * 1024 ** 3, usedBytes: 0 },
};

/** A node with room for one worker, or with one GPU, which another deployment has. */
function taken(need: Partial<RoomNeed>, workers: number): NodeBudget {
  const limits = { workers, memoryBytes: 1e12 };
  const gpus = new GpuLedger({ list: [GPU] });
  const budget = stack.use(new NodeBudget({ node: limits, organization: limits }, { gpus }));
  const tenant = { organization: "acme", deployment: "ocr", *workers() {} };
  const held = budget.takeFree({
    tenant,
    isUrgent: () => false,
    isNeeded: () => true,
    need: () => ({ leastBytes: 1, expectedBytes: 1, ...need }),
    again: () => {},
  });
  expect(held).toBeDefined();
  return budget;
}

/** What is in place of the program of a worker. */
const program = (command: string) => () =>
  launchAlone(() => ({ command: ["/bin/sh", "-c", command], env: {}, files: [] }));

const RECORD = {
  ...{ deploymentId: "d", organizationId: "o", organization: "acme", name: "worker" },
  ...{ desiredState: "running", targetRevision: 1, digest: "a".repeat(64), version: 1 },
  pausedEndpoints: [],
  settings: {
    ...{ memoryMib: 64, cpu: 1, env: {}, requires: {}, place: "any" },
    network: { access: "open", hosts: [] },
  },
} as unknown as DesiredDeployment;

/** A deployment of which nothing serves on this node. */
function unopened(
  record: Partial<DesiredDeployment>,
  options: Partial<ConstructorParameters<typeof Reconciler>[1]> = {},
): Why & { readonly reconciler: Reconciler } {
  const folder = stack.use(new TestFolder());
  const index = { service: MANIFEST, files: [], models: [{ name: "qwen", digest: "b" }] };
  const reconciler = stack.use(
    new Reconciler(
      { ...RECORD, ...record },
      {
        hold: async () => ({ index, readCode: "", release() {} }) as unknown as HeldArtifact,
        variables: async () => ({ env: {}, secrets: [] }),
        ...{ environments: undefined, layers: undefined, images: undefined },
        caches: { of: () => undefined },
        models: { hold: () => Promise.reject(new Error("there are no models")) },
        ...{ labels: {}, gpus: { list: [] }, onProgress() {}, onChange() {} },
        open: () => expect.unreachable("nothing is opened"),
        servedByOthers: async () => undefined,
        served: new LastServed(folder.path),
        manifests: { maySleep: () => false, read: async () => undefined, note: async () => {} },
        asleep: () => ({ [Symbol.dispose]() {} }),
        shareOf: () => ({ min: 0, max: 1, nodes: 1, queueTimeMs: 1_000 }),
        log: { debug() {}, info() {}, warn() {}, error() {} },
        ...options,
      },
    ),
  );
  const why: Why = (task, position) => reconciler.whyQueued(task, NOW_MS, { position });
  return Object.assign(why, { reconciler });
}

const attempt = (reason: string, retryAtMs?: number): ReturnedAttempt =>
  ({
    number: 2,
    worker: "node/1",
    failure: { reason },
    ...(retryAtMs !== undefined && { retryAtMs }),
  }) as never;

/** A situation: how it is staged, and what is told to anybody, and to members besides. */
interface Situation extends Asked {
  readonly stage: () => Promise<Why> | Why;
  readonly code: string;
  readonly message: string;
  readonly detail?: string | RegExp;
}

const LATER_MS = NOW_MS + 3_600_000;
const PAUSED = { endpoint: "work", pausedAtMs: LATER_MS, pausedBy: "ada@example.com" };

const SITUATIONS: Readonly<Record<string, Situation>> = {
  "its time is to come": {
    stage: () => resumed(),
    task: { ...TASK, runAtMs: LATER_MS },
    code: "SCHEDULED",
    message: "it is to start at 2026-01-31 13:00:00Z",
  },
  "its next attempt waits for a backoff": {
    stage: () => resumed(),
    task: { ...TASK, runAtMs: LATER_MS, returned: [attempt("error", LATER_MS)] },
    code: "RETRYING",
    message: "attempt 2 did not succeed, and the next begins at 2026-01-31 13:00:00Z",
  },
  "its deployment is stopped before it was opened": {
    stage: () => unopened({ desiredState: "stopped" }, { hold: () => new Promise(() => {}) }),
    code: "STOPPED",
    message: "its deployment is stopped",
  },
  "its deployment is stopped": {
    async stage() {
      const why = await resumed();
      why.hosting.hosted.closed = () => problem("DEPLOYMENT_STOPPED", "it is stopped");
      return why;
    },
    code: "STOPPED",
    message: "its deployment is stopped",
  },
  "its endpoint is paused": {
    stage: () => resumed({}, { pausedEndpoints: () => [PAUSED] }),
    code: "PAUSED",
    message: "its endpoint is paused",
    detail: "since 2026-01-31 13:00:00Z by ada@example.com",
  },
  "its endpoint was paused before it was opened": {
    stage: () => unopened({ pausedEndpoints: [PAUSED] }, { hold: () => new Promise(() => {}) }),
    code: "PAUSED",
    message: "its endpoint is paused",
    detail: "since 2026-01-31 13:00:00Z by ada@example.com",
  },
  "its node shuts down": {
    async stage() {
      const why = await resumed();
      await why.hosting.hosted.drain(0);
      return why;
    },
    code: "SHUTTING_DOWN",
    message: "its node is shutting down",
  },
  "the database refuses to write": {
    async stage() {
      const why = await resumed();
      why.hosting.hosted.storageRefused();
      return why;
    },
    code: "STORAGE_UNAVAILABLE",
    message: "the database refuses what its node writes",
  },
  "a model is on its way": {
    async stage() {
      const progress = { bytes: 41 * 2 ** 26, totalBytes: 100 * 2 ** 26, bytesPerSecond: 2 ** 26 };
      const why = unopened(
        {},
        {
          models: {
            hold(_, options) {
              options?.onProgress?.(progress);
              return new Promise(() => {});
            },
          },
        },
      );
      await expect.poll(() => why(TASK).code).toBe("PREPARING");
      return why;
    },
    code: "PREPARING",
    message: "what its worker needs is being prepared",
    detail: "waits for model qwen: 41 % of 6.3 GiB, 59 s left",
  },
  "its revision could not start": {
    async stage() {
      const why = unopened({}, { hold: () => Promise.reject(new Error("its files are gone")) });
      await expect.poll(() => why(TASK).code).toBe("REVISION_FAILED");
      return why;
    },
    code: "REVISION_FAILED",
    message: "its deployment could not start",
    detail: "its files are gone",
  },
  "its deployment is asleep": {
    async stage() {
      const manifests = {
        maySleep: () => true,
        read: async () => MANIFEST,
        note: async () => {},
      };
      const why = unopened({}, { manifests });
      await expect.poll(() => why.reconciler.isAsleep).toBe(true);
      return why;
    },
    code: "NO_WORKER_YET",
    message: "its deployment is at rest, and starts a worker for it",
  },
  "its deployment starts": {
    stage: () => unopened({}, { hold: () => new Promise(() => {}) }),
    code: "WORKER_STARTING",
    message: "its deployment is starting",
  },
  "no worker is wanted yet": {
    stage: () => resumed(),
    code: "NO_WORKER_YET",
    message: "its deployment is at rest, and starts a worker for it",
  },
  "its endpoint is gone": {
    stage: () => resumed(),
    task: { ...TASK, endpoint: "gone" },
    code: "ENDPOINT_MISSING",
    message: "the revision that serves has no endpoint gone",
  },
  "no machine has the label": {
    stage: () => placed({ requires: { gpu: "h200" } }, {}),
    code: "NO_MATCHING_WORKER",
    message:
      "no worker runs it: it waits for a worker with the label gpu=h200 that joins: tessera worker --join URL --deployment worker --label gpu=h200",
  },
  "no machine has a GPU": {
    stage: () => placed({}, { gpus: 1 }),
    code: "NO_MATCHING_WORKER",
    message:
      "no worker runs it: it waits for a worker with 1 GPU that joins: tessera worker --join URL --deployment worker",
  },
  "workers have to join, and none has": {
    stage: () => placed({ place: "remote" }, {}),
    code: "NO_MATCHING_WORKER",
    message:
      "no worker runs it: it waits for a worker that joins: tessera worker --join URL --deployment worker",
  },
  "others have the GPU": {
    stage: () =>
      resumed(
        { gpus: { count: 1 } },
        { budget: taken({ gpus: { count: 1 } }, 10), ...{ workers: 1, scale: { min: 1, max: 2 } } },
      ),
    code: "GPU_TAKEN",
    message: "its worker waits for a GPU, which others have",
    detail: "a worker needs 1 GPU, and GPU 0 (NVIDIA L4) is held by acme/ocr",
  },
  "the node is full": {
    stage: () =>
      resumed({}, { budget: taken({}, 1), ...{ workers: 1, scale: { min: 1, max: 2 } } }),
    code: "NO_ROOM",
    message: "its worker waits for room on the node",
    detail: "it runs the 1 workers that it may (tessera start --max-workers)",
  },
  "other workers start": {
    stage() {
      const starts = new StartGate(1);
      const leave = starts.tryEnter({ isUrgent: () => true, again() {} });
      stack.defer(() => leave?.());
      return resumed({}, { starts, ...{ workers: 1, scale: { min: 1, max: 2 } } });
    },
    code: "WORKER_STARTING",
    message: "its worker is about to start: a node starts a few at a time",
  },
  "its worker loads the service": {
    async stage() {
      let nowMs = NOW_MS;
      const launchOf = program("exec sleep 600");
      const why = await resumed(
        {},
        { launchOf, now: () => nowMs, ...{ workers: 1, scale: { min: 1, max: 2 } } },
      );
      nowMs += 42_000;
      return why;
    },
    code: "WORKER_STARTING",
    message: "a worker is starting, for 42 s so far",
  },
  "its workers end as they start": {
    async stage() {
      const launchOf = program("echo the key is not-for-everybody; exit 3");
      const why = await resumed(
        { env: { KEY: "not-for-everybody" } },
        { launchOf, ...{ workers: 1, scale: { min: 1, max: 2 } } },
        (code) => ({
          ...code,
          revision: {
            ...(code.revision as NonNullable<ServiceCode["revision"]>),
            secrets: ["KEY"],
          },
        }),
      );
      await expect.poll(() => why(TASK).message).toMatch(/again and again/);
      await expect.poll(() => why(TASK).detail).toContain("its last line");
      return why;
    },
    code: "WORKER_CRASHES",
    message: "its workers end again and again",
    detail: /exited with code 3; its last line: the key is \*\*\*$/,
  },
};

describe("why a task is queued where", () => {
  it.each(Object.entries(SITUATIONS))(
    "%s",
    async (_, { stage, code, message, detail, ...asked }) => {
      const why = await stage();
      expect(await told(why, ANYBODY, asked)).toEqual([code, message]);
      const whole =
        detail === undefined
          ? message
          : typeof detail === "string"
            ? `${message}: ${detail}`
            : expect.stringMatching(detail);
      expect(await told(why, MEMBER, asked)).toEqual([code, whole]);
      expect(await told(why, MEMBER, { ...asked, byAccess: true })).toEqual([code, message]);
    },
  );
});

describe("why a task is queued behind a worker", () => {
  const HOLD = `
    const held = new Promise(() => {});
    const never = (_, ctx) => Promise.race([held, new Promise((_, no) => ctx.signal.addEventListener("abort", no))]);`;
  const ENDPOINTS = `
    work: task({}, never),
    free: task({}, async () => 1),
    shared: task({ concurrencyPerKey: 2 }, async () => 1),
    slow: task({ ratePerKey: "10/min" }, async () => 1),
    both: task({ concurrencyPerKey: 1, ratePerKey: "5/h" }, async () => 1),
    gather: task({ batch: { maxSize: 8, maxWait: "10s" } }, async (all) => all.map(() => 1)),`;

  it("is that it is busy, may not be more, is free, or is to be had alone", async () => {
    const scale = { min: 1, max: 1 };
    const hosting = stack.use(await Hosting.start({ scale }));
    const { hosted } = hosting;
    await hosting.deploy(source(ENDPOINTS, HOLD));
    const why: Why = (task, position) => hosted.whyQueued(task, { position });
    const of = (name: string): Task => ({ ...TASK, endpoint: name });
    expect(await told(why, ANYBODY)).toEqual(["STARTS_NOW", "a worker is free, and takes it now"]);
    const taskId = await hosting.submit("work");
    await expect.poll(async () => (await hosted.tasks.get({ taskId })).status).toBe("running");
    expect(await told(why, ANYBODY)).toEqual([
      "DEPLOYMENT_LIMIT",
      "its one worker is busy, and its deployment may have no more",
    ]);
    expect(await told(why, ANYBODY, { position: 12 })).toEqual([
      "DEPLOYMENT_LIMIT",
      "its one worker is busy, and its deployment may have no more; 12 tasks are before it",
    ]);
    hosted.scale = { min: 1, max: 3 };
    expect(await told(why, ANYBODY, { position: 0 })).toEqual([
      "WORKERS_BUSY",
      "its worker is busy; it is the next",
    ]);
    await expect
      .poll(() => why(of("shared")))
      .toEqual({
        code: "KEY_LIMIT",
        message: "its key may have 2 tasks running at a time, and waits for its turn",
      });
    const rate = "it waits for the rate of its key, which may start 10 a minute";
    await expect.poll(() => why(of("slow"))).toEqual({ code: "KEY_RATE", message: rate });
    const both =
      "its key may have 1 task running at a time and start 5 an hour, and waits for its turn";
    await expect.poll(() => why(of("both"))).toEqual({ code: "KEY_LIMIT", message: both });
    // Slots are of an endpoint: those of another are free.
    await expect.poll(() => why(of("free")).code).toBe("STARTS_NOW");
    const suspect = { ...of("free"), returned: [attempt("worker_lost"), attempt("interrupted")] };
    expect(await told(why, ANYBODY, { task: suspect })).toEqual([
      "ALONE",
      "its worker ended with it, so it waits for one that it has to itself",
    ]);
    const failed = { ...suspect, returned: [attempt("worker_lost"), attempt("error")] };
    await expect.poll(() => why(failed).code).toBe("STARTS_NOW");
    // It is known to be empty after the first claim has found nothing.
    await expect.poll(() => why(of("gather")).code).toBe("BATCHING");
    await hosted.queue.cancel({ taskId }, true);
  });
});

describe("why a task is queued", () => {
  const facts = (given: Partial<QueuedFacts>): QueuedFacts => ({
    ...{ ...NOTHING_HERE, nowMs: NOW_MS },
    ...given,
  });
  const workers = (given: Partial<QueuedFacts["workers"]>) => ({
    ...NOTHING_HERE.workers,
    ...{ wanted: 2, ready: 2, answering: 2 },
    ...given,
  });
  const sentence = (given: Partial<QueuedFacts>): string[] => {
    const { code, message, detail = "" } = queuedReason(TASK, facts(given));
    return [code, message, detail];
  };

  it("is said of workers that do not answer, wait, or end", () => {
    expect(sentence({ workers: workers({ answering: 0 }) })).toEqual([
      "WORKER_UNRESPONSIVE",
      "none of its 2 workers answers at the moment, or each says that it is not ready",
      "",
    ]);
    const busy = { workers: workers({}), position: 1_000 };
    expect(sentence({ ...busy, shortage: { ofGpus: true, text: "GPU 0 is held" } })).toEqual([
      "WORKERS_BUSY",
      "all its 2 workers are busy, and another waits for a GPU; 1,000 tasks or more are before it",
      "GPU 0 is held",
    ]);
    expect(
      sentence({ position: 1, workers: workers({ startingSinceMs: NOW_MS - 1_000 }) }),
    ).toEqual([
      "WORKERS_BUSY",
      "all its 2 workers are busy, and another is starting; 1 task is before it",
      "",
    ]);
    const gone = workers({ ready: 0, answering: 0 });
    const crash = { isLoop: false, isPausing: true, text: "no room left" };
    expect(sentence({ workers: gone, crash })).toEqual([
      "WORKER_CRASHES",
      "its worker has ended, and another is started after a pause",
      "no room left",
    ]);
    expect(sentence({ workers: { ...gone, startingSinceMs: NOW_MS - 600_000 }, crash })).toEqual([
      "WORKER_STARTING",
      "a worker is starting, for 10 min so far",
      "the one before ended: no room left",
    ]);
    expect(sentence({ workers: gone, awaited: "a worker", joinedFault: "no module" })).toEqual([
      "NO_MATCHING_WORKER",
      "no worker runs it: it waits for a worker",
      "the one that has joined cannot start it: no module",
    ]);
  });

  it("says what a launcher says of machines that do not come", () => {
    const launch = "the launcher on slurm says: no quota";
    const none = { workers: workers({ ready: 0, answering: 0 }), launch };
    const faulty = { ...none, awaited: "a worker", joinedFault: "no module" };
    expect(sentence(faulty)[2]).toBe(
      `the one that has joined cannot start it: no module; ${launch}`,
    );
    expect(sentence({ ...none, awaited: "a worker" })[2]).toBe(launch);
    const shortage = { ofGpus: true, text: "GPU 0 is held" };
    expect(sentence({ ...none, shortage })[2]).toBe(`GPU 0 is held; ${launch}`);
    expect(sentence({ ...none, shortage: { ...shortage, ofGpus: false } })[2]).toBe(
      `GPU 0 is held; ${launch}`,
    );
    expect(sentence({ workers: workers({}), shortage, launch })[2]).toBe("GPU 0 is held");
  });

  it("is that others have its workers, whatever this node lacks", () => {
    const here = { failure: "no such file", isDraining: true, awaited: "a worker" };
    expect(sentence({ ...here, readyElsewhere: 2, position: 3 })).toEqual([
      "ON_OTHER_NODES",
      "its workers are on other nodes, where 2 are ready; 3 tasks are before it",
      "",
    ]);
    expect(sentence({ ...here, isStopped: true, readyElsewhere: 2 })[0]).toBe("STOPPED");
  });

  it("is short, however much a worker has said", () => {
    const [, , detail] = sentence({ failure: "x".repeat(100_000) });
    expect(detail).toHaveLength(601);
  });

  it("is one of those that the API and the document of a deployment name", () => {
    const codes = Object.keys(QueuedCode).filter((key) => Number.isNaN(Number(key)));
    const said = JSON.stringify(SCHEMAS["tessera.Task"]?.properties);
    const { queued_reason: documented } = JSON.parse(said);
    expect(documented.properties.code["x-extensible-enum"]).toEqual(
      codes.slice(1).map((code) => code.toLowerCase()),
    );
  });
});
