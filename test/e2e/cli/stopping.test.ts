import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  Health,
  HealthCheckResponse_ServingStatus,
} from "../../../gen/grpc/health/v1/health_pb.js";
import { get, KeptConnection, post, result, submit } from "./calling.ts";
import { Gate } from "./gate.ts";
import { isAlive, LOOPBACKS, Program, type ProgramOptions } from "./program.ts";

const PROCESS_MS = 40_000;
const SERVICE = fileURLToPath(new URL("services/gated.ts", import.meta.url));
const ENDLESS = fileURLToPath(new URL("services/endless.ts", import.meta.url));
const { SERVING, NOT_SERVING } = HealthCheckResponse_ServingStatus;

const folder = mkdtempSync(join(tmpdir(), "tessera-stopping-"));
let gate: Gate;
let resources: AsyncDisposableStack;
let databases = 0;
let database = "";

beforeAll(async () => {
  gate = await Gate.start();
});
afterAll(async () => {
  await gate[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  resources = new AsyncDisposableStack();
  databases += 1;
  database = join(folder, `${databases}.db`);
});
afterEach(() => resources.disposeAsync());

/** Serves with one worker on the database of this test. */
async function serve({ workers = "1", ...options }: ProgramOptions & { workers?: string } = {}) {
  const args = [SERVICE, "--workers", workers, "--database", database];
  const served = await Program.serve(args, options);
  resources.use(served.program);
  return served;
}

async function workerPid(url: string): Promise<number> {
  return Number((await post(`${url}/pid`)).body);
}

/** Listens at the server's port, as a worker could try to; rejects while that is taken. */
async function takePort(url: string, host: string): Promise<void> {
  const server = createServer().listen({ port: Number(new URL(url).port), host });
  await once(server, "listening");
  server.close();
  await once(server, "close");
}

const draining = /taking no more calls/;

describe.each(["SIGINT", "SIGTERM"] as const)("%s", { timeout: PROCESS_MS }, (signal) => {
  it("lets what runs finish, refuses what is new, and ends with code 0", async () => {
    const { program, url } = await serve();
    const pid = await workerPid(url);
    const task = await submit(url, "hold", { url: gate.url("task") });
    const running = await gate.visit("task");
    const next = await submit(url, "hold", { url: gate.url("next") });
    const answer = post(`${url}/ask`, { url: gate.url("call") });
    answer.catch(() => {});
    const asking = await gate.visit("call");
    using kept = new KeptConnection(url);
    expect((await kept.request("GET", "/readyz")).status).toBe(200);

    program.send(signal);
    await program.says("stderr", draining);

    const ready = await kept.request("GET", "/readyz");
    expect(ready.status).toBe(503);
    for (const path of ["/hold/submit", "/hold", "/ask"]) {
      const refused = await kept.request("POST", path, { url: gate.url("refused") });
      expect(refused.status).toBe(503);
      expect(refused.body).toContain("SHUTTING_DOWN");
    }
    for (const host of LOOPBACKS) {
      await expect(takePort(url, host)).rejects.toThrow("EADDRINUSE");
    }
    const refused = await post(`${url}/ask`, { url: gate.url("refused") });
    expect(refused.status).toBe(503);
    expect(refused.body).toContain("SHUTTING_DOWN");

    asking.open("answered");
    expect(await answer).toEqual({ status: 200, body: "answered" });
    running.open("done");
    const { code, stdout, stderr } = await program.ended;
    expect({ code, left: program.leftovers }).toEqual({ code: 0, left: [] });
    expect(isAlive(pid)).toBe(false);
    expect(`${stdout}${stderr}`).not.toMatch(/"level":[456]0|Warning/);

    const again = await serve();
    expect(await result(again.url, "hold", task)).toEqual({ status: 200, body: "done" });
    (await gate.visit("next")).open("after the restart");
    const later = await result(again.url, "hold", next);
    expect(later).toEqual({ status: 200, body: "after the restart" });
    expect((await again.program.stop(signal)).code).toBe(0);
  });
});

describe("stopping", { timeout: PROCESS_MS }, () => {
  it("is not held up by those who wait, watch or keep a connection", async () => {
    const { program, url } = await serve();
    await submit(url, "hold", { url: gate.url("first") });
    const running = await gate.visit("first");
    const waiting = await submit(url, "hold", { url: gate.url("second") });
    const longPoll = get(`${url}/hold/get?task_id=${waiting}&wait=60`).catch(() => "cut");
    const events = await fetch(`${url}/hold/events?task_id=${waiting}`);
    const session = connectHttp2(url).on("error", () => {});
    await once(session, "connect");
    const sessionClosed = new Promise((resolve) => session.once("close", resolve));
    const health = createClient(Health, createGrpcTransport({ baseUrl: url }));
    const statuses = health.watch({})[Symbol.asyncIterator]();
    expect((await statuses.next()).value?.status).toBe(SERVING);
    const silent = connect(Number(new URL(url).port), "127.0.0.1").on("error", () => {});
    await once(silent, "connect");
    const silentClosed = once(silent.resume(), "close");

    program.send("SIGTERM");
    expect((await statuses.next()).value?.status).toBe(NOT_SERVING);
    running.open("done");
    const releasedMs = performance.now();
    expect((await program.ended).code).toBe(0);
    expect(performance.now() - releasedMs).toBeLessThan(5_000);
    await Promise.all([sessionClosed, silentClosed, longPoll]);
    await events.text().catch(() => "cut");
    await statuses.next().catch(() => "cut");
    expect(program.leftovers).toEqual([]);
  });

  it("answers the calls that still wait for a worker", async () => {
    const { program, url } = await serve();
    const asked = [post(`${url}/ask`, { url: gate.url("one") })];
    const one = await gate.visit("one");
    using kept = new KeptConnection(url);
    const waiting = kept.request("POST", "/ask", { url: gate.url("two") });
    await post(`${url}/pid`);
    program.send("SIGTERM");
    const { status, body } = await waiting;
    expect({ status, body }).toEqual({
      status: 503,
      body: expect.stringContaining("SHUTTING_DOWN"),
    });
    one.open("answered");
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200]);
    expect((await program.ended).code).toBe(0);
  });

  it("returns a task that outlives the drain to the queue", async () => {
    const { program, url } = await serve({ entry: "impatient.ts", workers: "2" });
    const listens = await submit(url, "hold", { url: gate.url("listens") });
    await gate.visit("listens");
    const deaf = await submit(url, "deaf", { url: gate.url("deaf") });
    await gate.visit("deaf");
    const { code } = await program.stop();
    expect({ code, left: program.leftovers }).toEqual({ code: 0, left: [] });

    const again = await serve();
    (await gate.visit("listens")).open("the second time");
    (await gate.visit("deaf")).open("also");
    expect((await result(again.url, "hold", listens)).body).toBe("the second time");
    expect((await result(again.url, "deaf", deaf)).body).toBe("also");
  });

  it("never counts against a task, however often it interrupts it", {
    timeout: 3 * PROCESS_MS,
  }, async () => {
    const first = await serve({ entry: "impatient.ts" });
    const id = await submit(first.url, "hold", { url: gate.url("long") });
    let current = first;
    for (let stops = 1; stops <= 5; stops++) {
      await gate.visit("long");
      expect((await current.program.stop("SIGTERM")).code).toBe(0);
      current = await serve({ entry: "impatient.ts" });
    }
    (await gate.visit("long")).open("the sixth time");
    expect((await result(current.url, "hold", id)).body).toBe("the sixth time");
    const { body } = await get(`${current.url}/hold/status?task_id=${id}`);
    const status = JSON.parse(body) as {
      attempts: { number: number; node: string; failure: { reason: string } | null }[];
    };
    expect(status).toMatchObject({ status: "success", attempt: 6, failure: null });
    expect(status.attempts.map(({ number, failure }) => [number, failure?.reason])).toEqual([
      ...[1, 2, 3, 4, 5].map((number) => [number, "interrupted"]),
      [6, undefined],
    ]);
    expect(new Set(status.attempts.map(({ node }) => node)).size).toBe(1);
  });

  it.each(LOOPBACKS)("holds its port at %s until the last worker has ended", async (host) => {
    const { program, url } = await serve({ entry: "impatient.ts" });
    const pid = await workerPid(url);
    const name = host === "::1" ? "port-6" : "port-4";
    await submit(url, "deaf", { url: gate.url(name) });
    await gate.visit(name);
    program.send("SIGTERM");
    await program.says("stderr", draining);
    const takenWhileItLived = async (): Promise<boolean | undefined> => {
      const before = isAlive(pid);
      return await takePort(url, host).then(
        () => before && isAlive(pid),
        () => undefined,
      );
    };
    await expect.poll(takenWhileItLived, { interval: 1 }).toBe(false);
    expect((await program.ended).code).toBe(0);
  });

  it("ends at once, with code 1, at the second signal", async () => {
    const { program, url } = await serve();
    const task = await submit(url, "deaf", { url: gate.url("stuck") });
    const stuck = await gate.visit("stuck");
    program.send("SIGINT");
    await program.says("stderr", draining);
    const { code } = await program.stop("SIGINT");
    await stuck.gone;
    expect({ code, left: program.leftovers }).toEqual({ code: 1, left: [] });

    const again = await serve();
    (await gate.visit("stuck")).open("in the end");
    expect((await result(again.url, "deaf", task)).body).toBe("in the end");
  });

  it("ends a worker whose function blocks, at the second signal too", async () => {
    const { program, url } = await serve();
    const pid = await workerPid(url);
    await submit(url, "spin", { url: gate.url("spin") });
    (await gate.visit("spin")).open("go");
    program.send("SIGINT");
    await program.says("stderr", draining);
    expect((await program.stop("SIGINT")).code).toBe(1);
    resources.defer(() => void (isAlive(pid) && process.kill(pid, "SIGKILL")));
    await expect.poll(() => isAlive(pid)).toBe(false);
  });

  it("does not wait for a worker that is to be replaced", async () => {
    const { program, url } = await serve();
    process.kill(await workerPid(url), "SIGKILL");
    await program.says("stderr", /a worker ended/);
    const { code } = await program.stop();
    expect({ code, left: program.leftovers }).toEqual({ code: 0, left: [] });
  });

  it("lets what runs finish at Ctrl-C, of which the workers hear too", async () => {
    const { program, url } = await serve({ ownGroup: true });
    const answer = post(`${url}/ask`, { url: gate.url("typed") });
    const typed = await gate.visit("typed");
    program.interrupt();
    await program.says("stderr", draining);
    typed.open("answered");
    expect(await answer).toEqual({ status: 200, body: "answered" });
    expect((await program.ended).code).toBe(0);
  });

  it("does not wait for a service that is still loading", async () => {
    const program = new Program(["serve", "--port", "0", ENDLESS, "--database", database]);
    resources.use(program);
    await expect.poll(() => program.leftovers.length).toBeGreaterThan(0);
    const { code } = await program.stop();
    expect({ code, left: program.leftovers }).toEqual({ code: 0, left: [] });
  });

  it("says when loading takes long, and stops all the same", async () => {
    const program = new Program(["serve", "--port", "0", ENDLESS, "--database", database]);
    resources.use(program);
    await program.says("stderr", /takes long to load/);
    const { code } = await program.stop();
    expect({ code, left: program.leftovers }).toEqual({ code: 0, left: [] });
  });
});

describe("a server that is killed", { timeout: PROCESS_MS }, () => {
  it("leaves no worker behind, and its tasks run again", async () => {
    const { program, url } = await serve();
    const pid = await workerPid(url);
    const task = await submit(url, "deaf", { url: gate.url("orphan") });
    const orphan = await gate.visit("orphan");
    const { signal } = await program.stop("SIGKILL");
    expect(signal).toBe("SIGKILL");
    await orphan.gone;
    await expect.poll(() => isAlive(pid)).toBe(false);

    const again = await serve();
    (await gate.visit("orphan")).open("adopted");
    expect((await result(again.url, "deaf", task)).body).toBe("adopted");
  });
});
