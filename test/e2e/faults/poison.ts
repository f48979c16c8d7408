/** Innocent tasks beside tasks that end their workers, and what becomes of both. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildArtifact } from "../../../src/artifacts/build.ts";
import type { BuiltArtifact } from "../../../src/artifacts/build-options.ts";
import { WorkerPlace } from "../../../src/client/index.ts";
import { newDatabase } from "../../storage/postgres/databases.ts";
import type { Program } from "../cli/program.ts";
import { until, World } from "../hosting/world.ts";
import { buildOptions, indexEnv, tools } from "../python/uv.ts";
import { fixture, type Shown } from "../serve/served.ts";
import { hasJoined, startAgent, workerToken } from "../workers/agent-program.ts";

/** Of a worker, in MiB: a few of what poison takes at a time. */
const MEMORY_MIB = 256;
const GRACE_MS = 300;

/** What of the tasks is done by who runs them. */
export interface Queued {
  submit(endpoint: string, values: object): Promise<string>;
  status(endpoint: string, taskId: string, waitSeconds: number): Promise<Shown>;
}

export interface PoisonOptions {
  readonly innocents: number;
  /** How long an innocent task runs. */
  readonly ms: number;
  /** Endpoints whose tasks end their worker; each is submitted once. */
  readonly poison: readonly string[];
}

export interface Harm {
  /** Innocent tasks that did not succeed. */
  readonly failed: readonly Shown[];
  /** Of each task that is poison, by endpoint. */
  readonly poison: Readonly<Record<string, PoisonEnd>>;
  /** The longest time in which no innocent task ended while some waited. */
  readonly longestPauseMs: number;
}

export interface PoisonEnd extends Pick<Shown, "status"> {
  readonly reason: string;
  /** Attempts in which its function ran: one whose worker had gone before does not count. */
  readonly deaths: number;
}

/** What an attempt says that was given to a worker whose process another one had ended. */
const UNBEGUN = "its worker was ended for another reason";

/** Submits all of them mixed, and waits for their ends. */
export async function amongPoison(queued: Queued, options: PoisonOptions): Promise<Harm> {
  const { innocents, ms, poison } = options;
  const every = Math.max(2, Math.floor(innocents / (poison.length + 1)));
  const ids: string[] = [];
  const poisoned: [string, string][] = [];
  for (let at = 0; at < innocents; at++) {
    ids.push(await queued.submit("innocent", { ms }));
    const endpoint = poison[Math.floor(at / every)];
    if (endpoint && at % every === 1) {
      poisoned.push([endpoint, await queued.submit(endpoint, {})]);
    }
  }
  const endings = await Promise.all(ids.map((id) => untilEnded(queued, "innocent", id)));
  const ended = await Promise.all(
    poisoned.map(
      async ([endpoint, id]) => [endpoint, await untilEnded(queued, endpoint, id)] as const,
    ),
  );
  const times = endings
    .map(({ finished_at }) => Date.parse(finished_at ?? ""))
    .sort((a, b) => a - b);
  return {
    failed: endings.filter(({ status }) => status !== "success"),
    poison: Object.fromEntries(
      ended.map(([endpoint, { status, attempts, failure }]) => {
        const begun = attempts.filter((each) => !each.failure?.message.startsWith(UNBEGUN));
        return [endpoint, { status, deaths: begun.length, reason: failure?.reason }];
      }),
    ),
    longestPauseMs: Math.max(0, ...times.slice(1).map((at, index) => at - (times[index] ?? at))),
  };
}

async function untilEnded(queued: Queued, endpoint: string, id: string): Promise<Shown> {
  for (;;) {
    const task = await queued.status(endpoint, id, 20);
    if (["success", "failure", "cancelled"].includes(task.status)) {
      return task;
    }
  }
}

/** Where poison runs. */
export interface PoisonPlace {
  readonly language: "Node" | "Python";
  readonly database: "SQLite" | "Postgres";
  readonly machine: "the node" | "machines that joined";
  readonly workers: number;
}

/** The service that ends its workers, deployed with a limit of memory. */
export class PoisonedDeployment implements Queued, AsyncDisposable {
  readonly #world: World;
  readonly #agents: Program[];
  readonly #folder: string;

  static async start(place: PoisonPlace): Promise<PoisonedDeployment> {
    const { language, database, machine, workers } = place;
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "tessera-poison-")));
    const python = language === "Python" ? await pythonIn(folder) : undefined;
    const artifact = python?.artifact ?? (await buildArtifact(fixture("poison.ts")));
    const world = await World.start({
      ...(database === "Postgres" && { database: await newDatabase() }),
      ...(python && { env: python.env }),
      config: { graceMs: GRACE_MS, ...(python && { python: python.config }) },
    });
    const agents: Program[] = [];
    if (machine === "the node") {
      const settings = { minWorkers: workers, maxWorkers: workers, memoryMib: MEMORY_MIB };
      await world.deployed("poison", artifact, { settings });
    } else {
      const settings = { place: WorkerPlace.REMOTE, memoryMib: MEMORY_MIB };
      await world.deploy("poison", artifact, { settings });
      const token = await workerToken(world, ["poison"]);
      const flags = ["--workers", String(workers), ...(python?.flags ?? [])];
      agents.push(
        startAgent(world, {
          ...{ token, deployment: "poison", flags, env: python?.env ?? {} },
          limitMs: 600_000,
        }),
      );
      await hasJoined(agents[0] as Program);
    }
    const deployment = new PoisonedDeployment(world, agents, folder);
    await until(
      () => deployment.pid(),
      (pid) => pid !== undefined,
    );
    return deployment;
  }

  private constructor(world: World, agents: Program[], folder: string) {
    this.#world = world;
    this.#agents = agents;
    this.#folder = folder;
  }

  /** The process that answers now. */
  async pid(): Promise<number | undefined> {
    return (await this.call("pid", {})).json;
  }

  call(endpoint: string, body: object) {
    return this.#world.call("poison", `/${endpoint}`, { body });
  }

  async submit(endpoint: string, values: object): Promise<string> {
    const { status, text, json } = await this.call(`${endpoint}/submit`, values);
    if (status !== 202) {
      throw new Error(text);
    }
    return json.task_id;
  }

  async status(endpoint: string, taskId: string, waitSeconds: number): Promise<Shown> {
    const path = `/${endpoint}/status?task_id=${taskId}&wait=${waitSeconds}`;
    return (await this.#world.call("poison", path)).json;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const agent of this.#agents) {
      await agent[Symbol.asyncDispose]();
    }
    await this.#world[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

interface PythonPlace {
  readonly artifact: BuiltArtifact;
  readonly env: Record<string, string>;
  readonly config: {
    readonly interpreters: readonly string[];
    readonly needsSandbox: boolean;
    readonly uv: string;
    readonly maxBytesPerOrganization: number;
  };
  readonly flags: readonly string[];
}

async function pythonIn(folder: string): Promise<PythonPlace> {
  const found = await tools();
  const { version, path } = found.interpreter;
  // Pydantic alone, from where this machine gets packages.
  const { UV_INDEX, ...env } = indexEnv("");
  const service = join(folder, "poison.py");
  await copyFile(fixture("poison.py"), service);
  const artifact = await buildArtifact(service, {
    python: buildOptions(found, env),
  });
  const named = `${version}=${path}`;
  const maxBytesPerOrganization = 64 * 1024 ** 2;
  return {
    artifact,
    env,
    config: { interpreters: [named], needsSandbox: true, uv: found.uv, maxBytesPerOrganization },
    flags: ["--sandbox", "kernel", "--python", named, "--uv", found.uv],
  };
}
