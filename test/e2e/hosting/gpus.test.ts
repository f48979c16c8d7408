/** Deployments with GPUs, on a node whose `nvidia-smi` lists some that are not there. */
import { chmodSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { basename, delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { DeploymentStatus, FailureReason, WorkerPlace } from "../../../src/client/index.ts";
import { descendantsOf } from "../../../src/pool/process-tree.ts";
import { bearer, Folder } from "../start/platform.ts";
import { hasJoined, startAgent, workerToken } from "../workers/agent-program.ts";
import { artifact, reasonOf, World } from "./world.ts";

const OPERATOR = "of-the-operator";

/** How long tests wait for what takes a start of a worker or two. */
const WAIT = { timeout: 60_000, interval: 250 };

interface Seen {
  readonly version: string;
  readonly worker: string;
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly gpu: string;
  readonly memory: string;
}

/** The `PATH` of a machine with so many GPUs of 80 GiB. What programs use of them is in a file. */
function machineWith(count: number, folder: Folder): string {
  const gpus = Array.from(
    { length: count },
    (_, index) =>
      `${index}, ${uuid(index, folder)}, NVIDIA H100, 81920, 0, Disabled, 00000000:0${index}:00.0`,
  );
  writeFileSync(join(folder.path, "gpus"), `${gpus.join("\n")}\n`);
  writeFileSync(join(folder.path, "apps"), "");
  const program = join(folder.path, "nvidia-smi");
  writeFileSync(
    program,
    `#!/bin/sh\ncase "$1" in --query-gpu*) cat ${folder.path}/gpus;; *) cat ${folder.path}/apps;; esac\n`,
  );
  chmodSync(program, 0o755);
  return [folder.path, process.env.PATH].join(delimiter);
}

/** Of one test's machine alone: others that run beside it on the real one lock their own. */
function uuid(index: number, folder: Folder): string {
  return `GPU-${index}.${basename(folder.path)}`;
}

/** What a worker saw of such a machine. */
function seen<Of extends Partial<Seen>>(found: Of): Of {
  return found.gpu === undefined ? found : { ...found, gpu: found.gpu.replaceAll(/\.[^,]+/g, "") };
}

/** A platform on such a machine. */
async function platformWith(count: number, folder: Folder): Promise<World> {
  return World.start({
    env: {
      PATH: machineWith(count, folder),
      TESSERA_GPU_STAY: "0s",
      TESSERA_METRICS_TOKEN: OPERATOR,
      TESSERA_MAX_WORKERS: "8",
    },
  });
}

/** The numbers on the node's page of metrics that begin so. */
async function measured(world: World, series: string): Promise<number> {
  const res = await fetch(`${world.platform.url}/metrics`, { headers: bearer(OPERATOR) });
  const line = (await res.text()).split("\n").find((text) => text.startsWith(series));
  return Number(line?.split(" ")[1]);
}

const look = async (world: World, name: string): Promise<Seen> =>
  seen((await world.call(name, "/look", { body: {} })).json);

const submit = async (world: World, name: string, body: object = {}): Promise<string> =>
  (await world.call(name, "/learn/submit", { body })).json.task_id;

const result = async (world: World, name: string, id: string): Promise<Seen> =>
  seen((await world.call(name, `/learn/get?task_id=${id}&wait=60`)).json);

describe("a node with one GPU", () => {
  let world: World;
  const folder = new Folder();
  beforeAll(async () => {
    world = await platformWith(1, folder);
  });
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  it("gives it to one deployment after the other, each when the one before does nothing", async () => {
    const built = await artifact("gpu");
    const settings = { minWorkers: 1, maxWorkers: 2, gpus: 1 };
    await world.deployed("first", built, { settings });
    expect((await look(world, "first")).gpu).toBe("GPU-0");
    const { workers } = await world.client.deployments.listWorkers({ deployment: "first" });
    expect(workers.map(({ gpus }) => gpus)).toEqual([["GPU 0 (NVIDIA H100)"]]);
    // The roll-out takes it from the worker that does nothing, although that is the only one.
    await world.deployed("second", built, { settings });
    const { status } = await world.until("first", ({ statusReason }) =>
      statusReason.includes("GPU 0 (NVIDIA H100) is held by acme/second"),
    );
    expect(status).toBe(DeploymentStatus.DEGRADED);
    expect(await measured(world, 'tessera_node_gpus{gpu_state="held"')).toBe(1);
    // A call waits for it, and so does a task.
    expect((await look(world, "first")).gpu).toBe("GPU-0");
    const task = await submit(world, "second");
    expect((await result(world, "second", task)).gpu).toBe("GPU-0");
    const busy = await submit(world, "first", { forMs: 3_000 });
    await vi.waitUntil(async () => {
      const { json } = await world.call("first", `/learn/status?task_id=${busy}`);
      return json.status === "running";
    }, WAIT);
    const waiting = await look(world, "second");
    expect(waiting.sinceMs).toBeGreaterThan((await result(world, "first", busy)).untilMs);
  }, 120_000);

  it("rolls out another revision of the deployment that has it, when its calls have ended", async () => {
    const settings = { minWorkers: 1, maxWorkers: 1, gpus: 1 };
    await world.deployed("rolling", await artifact("gpu"), { settings });
    const before = await submit(world, "rolling", { forMs: 2_000 });
    const next = await artifact("gpu", { '"one"': '"two"' });
    await world.deployed("rolling", next);
    expect(await look(world, "rolling")).toMatchObject({ version: "two", gpu: "GPU-0" });
    const last = await result(world, "rolling", before);
    expect(last.version).toBe("one");
    // What does not start lets the one before serve again.
    await world.deploy("rolling", next, { settings: { env: { BROKEN: "1" } } });
    await world.until("rolling", ({ status }) => status === DeploymentStatus.FAILED);
    expect((await look(world, "rolling")).version).toBe("two");
    await world.client.deployments.deleteDeployment({ deployment: "rolling", force: true });
  }, 120_000);

  it("refuses by name what no node has", async () => {
    const refused = world.deploy("large", await artifact("gpu"), { settings: { gpus: 3 } });
    await expect(refused).rejects.toThrow(
      /each worker would need 3 GPUs, which no node has: node \S+ has NVIDIA H100 with 80 GiB: ask for less/,
    );
    const shares = world.deploy("large", await artifact("gpu"), {
      settings: { gpuMemoryMib: 90_000 },
    });
    await expect(shares).rejects.toThrow("each worker would need 87.9 GiB of 1 GPU");
    const { deployments } = world.client;
    const update = {
      deployment: { name: "first", settings: { gpus: 2 } },
      updateMask: { paths: ["settings.gpus"] },
    };
    await expect(deployments.updateDeployment(update)).rejects.toThrow("would need 2 GPUs");
  });

  it("leaves it out for a deployment whose workers lose it three times, and says so", async () => {
    const settings = { minWorkers: 0, maxWorkers: 1, gpus: 1 };
    await world.deployed("crashing", await artifact("gpu"), { settings });
    for (let times = 0; times < 3; times += 1) {
      await world.call("crashing", "/lose/submit", { body: {} });
    }
    // Between two of them, another deployment may have the GPU for a start and a second.
    await vi.waitUntil(async () => {
      const { statusReason } = await world.client.deployments.getDeployment({
        deployment: "crashing",
      });
      return statusReason.includes(
        "GPU 0 (NVIDIA H100) is left out: workers of acme/crashing ended on it again and again",
      );
    }, WAIT);
    expect(await measured(world, 'tessera_node_gpus{gpu_state="left_out"')).toBe(1);
    // Others have it all the same.
    expect((await look(world, "first")).gpu).toBe("GPU-0");
  }, 120_000);
});

describe("a node with two GPUs", () => {
  let world: World;
  const folder = new Folder();
  beforeAll(async () => {
    world = await platformWith(2, folder);
  });
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  it("gives shares of their memory to several workers at a time, and the rest whole", async () => {
    const built = await artifact("gpu");
    const fixed = { minWorkers: 1, maxWorkers: 1 };
    await world.deployed("half", built, { settings: { ...fixed, gpuMemoryMib: 40 * 1024 } });
    await world.deployed("other", built, { settings: { ...fixed, gpuMemoryMib: 40 * 1024 } });
    await world.deployed("whole", built, { settings: { ...fixed, gpus: 1 } });
    const found = await Promise.all(["half", "other", "whole"].map((name) => look(world, name)));
    expect(found.map(({ gpu }) => gpu)).toEqual(["GPU-0", "GPU-0", "GPU-1"]);
    await world.deploy("both", built, { settings: { ...fixed, minWorkers: 0, gpus: 2 } });
    await world.until("both", ({ status }) => status === DeploymentStatus.READY);
    expect((await look(world, "both")).gpu).toBe("GPU-0,GPU-1");
  }, 120_000);
});

/** The processes of the workers of a deployment, by a variable of its settings. */
function processesOf(who: string): number[] {
  return [...descendantsOf(process.pid)].filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`WHO=${who}`);
    } catch {
      return false; // It has ended.
    }
  });
}

const hasMachinePids = readlinkSync("/proc/self/ns/pid") === "pid:[4026531836]";

describe("a node with one GPU that workers share", () => {
  let world: World;
  const folder = new Folder();
  beforeAll(async () => {
    world = await platformWith(1, folder);
  });
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  const half = (who: string) => ({ minWorkers: 1, maxWorkers: 1, gpus: 0.5, env: { WHO: who } });

  it("gives parts of it up to the whole, and says who has which", async () => {
    const built = await artifact("gpu");
    await world.deployed("modest", built, { settings: half("modest") });
    await world.deployed("greedy", built, { settings: half("greedy") });
    const found = await Promise.all(["modest", "greedy"].map((name) => look(world, name)));
    expect(found.map(({ gpu, memory }) => [gpu, memory])).toEqual([
      ["GPU-0", String(39.5 * 1024 ** 3)],
      ["GPU-0", String(39.5 * 1024 ** 3)],
    ]);
    const { workers } = await world.client.deployments.listWorkers({ deployment: "greedy" });
    expect(workers.map(({ gpus }) => gpus)).toEqual([["40 GiB (0.5) of GPU 0 (NVIDIA H100)"]]);
    const { settings } = await world.client.deployments.getDeployment({ deployment: "greedy" });
    expect(settings?.gpus).toBe(0.5);
  }, 60_000);

  it.each([1.5, 0.333, 17, -1])("refuses %d GPUs for a worker", async (gpus) => {
    const refused = world.deploy("wrong", await artifact("gpu"), { settings: { gpus } });
    await expect(refused).rejects.toThrow(/settings.gpus/);
  });

  it.skipIf(!hasMachinePids)(
    "ends a worker that uses more than its part, and no other",
    async () => {
      const task = await submit(world, "greedy", { forMs: 300_000 });
      const before = await look(world, "modest");
      const uses = (who: string, mib: number) =>
        processesOf(who)
          .slice(0, 1)
          .map((pid) => `${uuid(0, folder)}, ${pid}, ${mib}\n`);
      writeFileSync(
        join(folder.path, "apps"),
        [...uses("greedy", 60_000), ...uses("modest", 41_000)].join(""),
      );
      const attempt = await vi.waitUntil(async () => {
        const { attempts } = await world.client.tasks.getTask({
          ...{ deployment: "acme/greedy", taskId: task },
        });
        return attempts.find(({ failure }) => failure !== undefined);
      }, WAIT);
      expect(attempt?.failure?.reason).toBe(FailureReason.OUT_OF_MEMORY);
      expect(attempt?.failure?.message).toMatch(
        /out of GPU memory: it used 60000 MiB of 40960 MiB of GPU 0 \(NVIDIA H100\)/,
      );
      expect((await look(world, "modest")).worker).toBe(before.worker);
      // Its next attempt may run already.
      const running = { deployment: "acme/greedy", taskId: task, abort: true };
      await world.client.tasks.cancelTask(running);
    },
    120_000,
  );
});

it("refuses a local deployment with a GPU on a platform without, and lets any other wait for a machine", async () => {
  await using world = await World.start();
  const { deployments } = world.client;
  const built = await artifact("gpu");
  await expect(world.deploy("local", built, { settings: { gpus: 1, place: 1 } })).rejects.toThrow(
    /each worker would need 1 GPU, which no node has: node \S+ has none/,
  );
  await world.deploy("any", built, { settings: { gpus: 1 } });
  const { statusReason } = await world.until(
    "any",
    (it) => it.statusReason !== "" && it.revision !== 0,
  );
  expect(statusReason).toContain("waits for a worker with 1 GPU that joins");
  const refused = await world.call("any", "/look", { body: {} });
  expect(reasonOf(refused)).toBe("NO_MATCHING_WORKER");
  await deployments.deleteDeployment({ deployment: "any", force: true });
});

it("starts what waits for a GPU when nvidia-smi begins to answer", async () => {
  using folder = new Folder();
  const PATH = machineWith(1, folder);
  const [program, driver] = [join(folder.path, "nvidia-smi"), join(folder.path, "driver")];
  const answers = readFileSync(program, "utf8");
  writeFileSync(program, answers.replace("\n", `\n[ -e ${driver} ] || exit 9\n`));
  await using world = await World.start({ env: { PATH } });
  await world.deploy("early", await artifact("gpu"), { settings: { gpus: 1 } });
  await world.until("early", ({ statusReason }) => statusReason.includes("waits for a worker"));
  writeFileSync(driver, "");
  await world.until("early", ({ status }) => status === DeploymentStatus.READY);
  expect((await look(world, "early")).gpu).toBe("GPU-0");
}, 60_000);

describe("a machine that joins", () => {
  it("gives each of its workers GPUs of its own, and none where it has too few", async () => {
    using folder = new Folder();
    await using world = await World.start();
    await world.deploy("afar", await artifact("gpu"), { settings: { gpus: 1, place: 3 } });
    const token = await workerToken(world, ["afar"]);
    const join = (env: Record<string, string>, ...flags: string[]) =>
      startAgent(world, { token, deployment: "afar", flags, env });
    await using bare = join({});
    await bare.says(
      "stderr",
      /a worker of deployment acme\/afar needs 1 GPU, and this machine has 0 GPUs/,
    );
    await using agent = join({ PATH: machineWith(2, folder) }, "--workers", "2");
    await hasJoined(agent);
    expect(agent.stdout).toContain("gpus       NVIDIA H100 (80 GiB), NVIDIA H100 (80 GiB)");
    const seen = new Set<string>();
    while (seen.size < 2) {
      const ids = [submit(world, "afar", { forMs: 300 }), submit(world, "afar", { forMs: 300 })];
      for (const id of await Promise.all(ids)) {
        seen.add((await result(world, "afar", id)).gpu);
      }
    }
    expect([...seen].toSorted()).toEqual(["GPU-0", "GPU-1"]);
  }, 60_000);
});

it("deals a GPU out on a node or in a worker that has joined beside it, and never in both", async () => {
  using folder = new Folder();
  await using world = await platformWith(1, folder);
  const built = await artifact("gpu");
  const settings = { minWorkers: 1, maxWorkers: 1, gpus: 0.5 };
  await world.deployed("near", built, { settings });
  await world.deploy("afar", built, { settings: { gpus: 0.5, place: WorkerPlace.REMOTE } });
  const token = await workerToken(world, ["afar"]);
  const env = { PATH: machineWith(1, folder) };
  await using agent = startAgent(world, { token, deployment: "afar", env });
  await agent.says("stderr", /GPU 0 \(NVIDIA H100\) is left out: another node, or a joined worker/);
  await world.client.deployments.deleteDeployment({ deployment: "near", force: true });
  await hasJoined(agent);
  await world.until("afar", ({ status }) => status === DeploymentStatus.READY);
  expect(await look(world, "afar")).toMatchObject({
    gpu: "GPU-0",
    memory: String(39.5 * 1024 ** 3),
  });
  await world.deploy("near", built, { settings });
  await world.until("near", ({ statusReason }) =>
    statusReason.includes("is left out: another node, or a joined worker, on this machine has it"),
  );
  await agent.stop("SIGKILL");
  await world.until("near", ({ status }) => status === DeploymentStatus.READY);
}, 120_000);

/** Tasks of all deployments together; 10,000 take three minutes. */
const TASKS = Number(process.env.TESSERA_GPU_TASKS ?? 300);

it("ends all tasks of twenty deployments that want one GPU, with one worker at a time", async () => {
  using folder = new Folder();
  await using world = await platformWith(1, folder);
  const built = await artifact("gpu");
  const names = Array.from({ length: 20 }, (_, index) => `model-${index}`);
  const settings = { minWorkers: 0, maxWorkers: 2, gpus: 1 };
  await Promise.all(names.map((name) => world.deploy(name, built, { settings })));
  for (const name of names) {
    await world.until(name, ({ revision }) => revision === 1);
  }
  const swapsBefore = await measured(world, "tessera_node_evictions_total");
  const submitted = await Promise.all(
    names.map(async (name) => {
      const ids: string[] = [];
      while (ids.length < TASKS / names.length) {
        ids.push(await submit(world, name));
      }
      return [name, ids] as const;
    }),
  );
  const seen: Seen[] = [];
  await Promise.all(
    submitted.map(async ([name, ids]) => {
      for (const id of ids) {
        let found = await result(world, name, id);
        while (found.worker === undefined) {
          found = await result(world, name, id);
        }
        seen.push(found);
      }
    }),
  );
  expect(seen).toHaveLength(TASKS);
  const swaps = (await measured(world, "tessera_node_evictions_total")) - swapsBefore;
  expect(swaps).toBeLessThanOrEqual(2 * names.length);
  const lives = [...Map.groupBy(seen, ({ worker }) => worker).values()]
    .map((calls) => ({
      sinceMs: Math.min(...calls.map(({ sinceMs }) => sinceMs)),
      untilMs: Math.max(...calls.map(({ untilMs }) => untilMs)),
    }))
    .sort((a, b) => a.sinceMs - b.sinceMs);
  for (const [index, { sinceMs }] of lives.entries()) {
    expect(sinceMs).toBeGreaterThanOrEqual(lives[index - 1]?.untilMs ?? 0);
  }
}, 1_800_000);
