import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { bundleService } from "../../src/artifacts/bundle.ts";
import { workerRights } from "../../src/deployments/permissions.ts";
import { DEFAULT_LIMITS } from "../../src/pool/limits.ts";
import { LocalWorker } from "../../src/pool/local-worker.ts";
import { Pool } from "../../src/pool/pool.ts";
import { RemoteWorker } from "../../src/pool/remote/remote-worker.ts";
import type { ServiceCode } from "../../src/pool/worker-options.ts";
import type { EndpointManifest } from "../../src/protocol/manifest.ts";
import { createIdSource } from "../../src/tasks/id.ts";
import { localFiles } from "../storage/files/local.ts";

const FAULTS = fileURLToPath(new URL("../fixtures/services/serve/faults.ts", import.meta.url));

let scratchFolder: string;
let endpoints: Map<string, EndpointManifest>;
let pool: Pool;
let failures: unknown[];
let onCapacity: () => void;
/** How many workers a service says that it wants. */
let declared: number | undefined;
/** Thrown when the next worker is started. */
let startFails: Error | undefined;
let onSpawn: (pid: number) => void;
/** Workers that are ready and have not ended, as who opens and closes their leases is told. */
let held: Set<string>;

beforeEach(async () => {
  scratchFolder = mkdtempSync(join(tmpdir(), "tessera-pool-test-"));
  failures = [];
  onCapacity = () => {};
  startFails = undefined;
  onSpawn = () => {};
  declared = undefined;
  held = new Set();
  pool = new Pool({
    size: 1,
    sizeOf: () => declared ?? pool.size,
    newId: createIdSource(),
    startWorker: (service, workerId, { onAnswering }) => {
      const err = startFails;
      startFails = undefined;
      if (err) {
        throw err;
      }
      const options = {
        service,
        scratchFolder,
        env: {},
        maxResultBytes: 1_000,
        graceMs: 100,
        maxFileBytes: 1_000,
        keepers: localFiles(),
        rights: workerRights({ ...service, scratchFolder }),
        readyTimeoutMs: 30_000,
        onSpawn: (pid: number) => onSpawn(pid),
        onOutput() {},
        onFault() {},
      };
      return new LocalWorker(workerId, options, onAnswering);
    },
    onReady: async ({ id }) => void held.add(id),
    onExit: ({ id }) => void held.delete(id),
    onRestartFailed: (err) => failures.push(err),
    onCapacity: () => onCapacity(),
  });
  const manifest = await pool.replace(await bundleService(FAULTS), () => {});
  endpoints = new Map(manifest.endpoints.map((endpoint) => [endpoint.name, endpoint]));
});

afterEach(async () => {
  await pool[Symbol.asyncDispose]();
  rmSync(scratchFolder, { recursive: true, force: true });
});

function reserve(name: string) {
  const endpoint = endpoints.get(name);
  return endpoint && pool.reserve(endpoint);
}

function endpointOf(name: string): EndpointManifest {
  return endpoints.get(name) ?? expect.unreachable(`there is no endpoint ${name}`);
}

/** The service as a revision of which these endpoints wait for workers on other machines. */
async function placed(...names: readonly string[]): Promise<ServiceCode> {
  const awaits = {
    endpoints: new Map(names.map((name) => [name, "a GPU"])),
    isWhole: names.length === endpoints.size,
  };
  const network = { access: "open", hosts: [] } as const;
  const revision = { number: 1, env: {}, limits: DEFAULT_LIMITS, network, awaits };
  return { ...(await bundleService(FAULTS)), revision };
}

/** True when a call of the endpoint could begin now. */
function isFree(name: string): boolean {
  const slot = reserve(name);
  slot?.release();
  return slot !== undefined;
}

const call = (values: object) => ({
  arguments: { json: JSON.stringify(values), files: [] },
  taskId: "t",
  attempt: 1,
});

describe("a pool", () => {
  test("gives no calls to a worker that is blocked, and says when it answers again", async () => {
    const slot = reserve("block_call");
    slot?.execute(call({ url: "http://127.0.0.1:1/", ms: 3_500 }), { onEnd() {} });
    await expect.poll(() => isFree("pid")).toBe(false);
    expect(pool.ready).toBe(true);
    await new Promise<void>((resolve) => {
      onCapacity = resolve;
    });
    expect(isFree("pid")).toBe(true);
    slot?.release();
  });

  test("starts another worker beside one that drains, and has no more when that has ended", async () => {
    const answers: ServerResponse[] = [];
    const gate = createServer((_req, res) => answers.push(res)).listen(0, "127.0.0.1");
    await once(gate, "listening");
    const url = `http://127.0.0.1:${(gate.address() as AddressInfo).port}`;
    const beside = reserve("gated_call");
    const neighbour = Promise.withResolvers<unknown>();
    beside?.execute(call({ url, listens: true }), { onEnd: neighbour.resolve });
    const deaf = reserve("linger_call");
    const aborted = Promise.withResolvers<unknown>();
    deaf?.execute(call({ listens: false }), {
      onEnd(end) {
        deaf.release();
        aborted.resolve(end);
      },
    });
    expect(await aborted.promise).toMatchObject({ kind: "aborted", reason: "timeout" });
    expect(isFree("pid")).toBe(false);
    await expect.poll(() => isFree("pid")).toBe(true);
    const other = reserve("pid");
    expect(other?.workerId).not.toBe(beside?.workerId);
    other?.release();
    expect([pool.size, pool.readyCount]).toEqual([1, 2]);
    await expect.poll(() => answers.length).toBe(1);
    answers[0]?.end("on");
    expect(await neighbour.promise).toMatchObject({ kind: "result" });
    beside?.release();
    await expect.poll(() => held).toEqual(new Set([other?.workerId]));
    expect([pool.readyCount, pool.present]).toEqual([1, 1]);
    gate.close();
  });

  test("has as many workers as the service says that it brings in, with each that follows", async () => {
    for (const workers of [3, 1, 2]) {
      declared = workers;
      await pool.replace(await bundleService(FAULTS), () => {});
      expect([pool.size, pool.readyCount]).toEqual([workers, workers]);
    }
  });

  test("stays as large as it was when what it should bring in is refused", async () => {
    declared = 3;
    const refuse = (): void => {
      throw new Error("no");
    };
    await expect(pool.replace(await bundleService(FAULTS), refuse)).rejects.toThrow("no");
    expect([pool.size, pool.readyCount]).toEqual([1, 1]);
  });

  test("replaces a worker that ended, also when that fails at first", async () => {
    startFails = new Error("no room for a scratch folder");
    const ended = Promise.withResolvers<unknown>();
    const slot = reserve("exit_call");
    slot?.execute(call({}), { onEnd: ended.resolve });
    expect(await ended.promise).toMatchObject({ kind: "lost" });
    slot?.release();
    await new Promise<void>((resolve) => {
      onCapacity = resolve;
    });
    expect(failures).toEqual([new Error("no room for a scratch folder")]);
    expect(isFree("pid")).toBe(true);
  });

  test("does not take on a revision of which a worker ended while the others loaded", async () => {
    const serving = [...held];
    pool.resize(2);
    await expect.poll(() => pool.readyCount).toBe(2);
    const pids: number[] = [];
    onSpawn = (pid) => {
      pids.push(pid);
      if (pids.length === 2) {
        process.kill(pids[0] ?? 0, "SIGKILL");
      }
    };
    const replaced = pool.replace(await bundleService(FAULTS), () => {});
    await expect(replaced).rejects.toThrow(/ended before it took calls: .*SIGKILL/);
    await expect.poll(() => [...pool.alive].length).toBe(2);
    expect(held).toEqual(new Set([...pool.alive].map(({ id }) => id)));
    expect([...held]).toEqual(expect.arrayContaining(serving));
  });

  test("gives its workers no calls of endpoints that wait for others, and starts none for all", async () => {
    const service = await placed("block_call");
    await pool.replace(service, () => {});
    expect([isFree("pid"), isFree("block_call")]).toEqual([true, false]);
    expect([pool.serves({ name: "pid" }), pool.serves({ name: "block_call" })]).toEqual([
      true,
      false,
    ]);
    pool.adopt(await placed(...endpoints.keys()));
    await expect.poll(() => [...pool.alive].length).toBe(0);
    expect([pool.size, pool.present, pool.ready]).toEqual([1, 0, false]);
  });

  /** A worker on another machine that runs one endpoint of a revision. */
  function afar(revision?: number): RemoteWorker {
    const manifest = { name: "faults", endpoints: [...endpoints.values()] };
    return new RemoteWorker({
      ...{ id: "afar", revision, manifest, lease: {} },
      machine: { hostname: "afar", platform: "", version: "", labels: { gpu: "h200" } },
      ...{ graceMs: 100, silenceMs: 60_000, keepers: localFiles() },
      ...{ maxFileBytes: 1_000, maxResultBytes: 1_000, onCapacity() {} },
      endpoints: new Set(["pid"]),
    });
  }

  test("lets a worker go that joins with a revision before the one that serves", async () => {
    pool.resize(0);
    const worker = afar(1);
    await pool.join(worker);
    expect((await worker.exited).message).toBe("it ended");
    expect(isFree("pid")).toBe(false);
  });

  test("gives a worker on another machine the calls of its endpoints only", async () => {
    pool.resize(0);
    const worker = afar();
    await pool.join(worker);
    worker.connect({ send() {}, end() {} });
    const [pid, other] = [endpointOf("pid"), endpointOf("block_call")];
    expect([pool.joined.isStarting(pid), pool.joined.isStarting(other)]).toEqual([true, false]);
    worker.offers(new Map([...endpoints.keys()].map((name) => [name, 2])));
    expect([isFree("pid"), isFree("block_call")]).toEqual([true, false]);
    expect([pool.joined.readyFor([pid]), pool.joined.readyFor([pid, other])]).toEqual([1, 0]);
    worker.kill("the test is over");
  });

  test("lets what has a slot begin before a worker that was told to stop ends", async () => {
    const slot = reserve("pid");
    const closed = pool.close(10_000);
    const ended = Promise.withResolvers<unknown>();
    slot?.execute(call({}), { onEnd: ended.resolve });
    expect(await ended.promise).toMatchObject({ kind: "result" });
    slot?.release();
    await closed;
  });
});
