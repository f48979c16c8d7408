/** Deployments that are a program: a folder with a tessera.yaml and no code, in the kernel's sandbox. */
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildArtifact } from "../../../src/artifacts/build.ts";
import type { BuiltArtifact } from "../../../src/artifacts/build-options.ts";
import type { ProgramService } from "../../../src/artifacts/program.ts";
import { deployPlan } from "../../../src/cli/deploy/plan.ts";
import { DeploymentStatus, WorkerPlace } from "../../../src/client/index.ts";
import { skipped } from "../../pool/sandbox/available.ts";
import { startAgent, workerToken } from "../workers/agent-program.ts";
import { type CallOptions, World } from "./world.ts";

const WEB = fileURLToPath(new URL("../../fixtures/programs/web", import.meta.url));

/** A close frame (RFC 6455, section 5.5.1) with the code 1012. */
const RESTART_FRAME = Buffer.from([0x88, 0x02, 0x03, 0xf4]);

describe.skipIf(skipped)(`a program that is deployed${skipped}`, () => {
  let world: World;
  let folder: string;

  /** The artifact of a copy of the folder, with these texts replaced in its files. */
  async function build(replacements: Readonly<Record<string, string>> = {}) {
    const home = join(mkdtempSync(join(folder, "web-")), "web");
    cpSync(WEB, home, { recursive: true });
    for (const [from, to] of Object.entries(replacements)) {
      for (const name of ["tessera.yaml", "server.js"]) {
        const path = join(home, name);
        writeFileSync(path, readFileSync(path, "utf8").replace(from, to));
      }
    }
    return built(home);
  }

  beforeAll(async () => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), "tessera-programs-")));
    world = await World.start({ env: { TESSERA_SANDBOX: "kernel" } });
    await world.deployed("web", await build(), { settings: { minWorkers: 1, maxWorkers: 1 } });
  }, 120_000);
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const call = (path: string, options?: CallOptions) => world.call("web", path, options);
  const get = (path: string) => call(path, { method: "GET" });

  async function socket() {
    const { port } = new URL(world.platform.url);
    const sent = request({
      ...{ host: "127.0.0.1", port, path: "/live", agent: false },
      headers: {
        host: `web.acme.apps.localhost:${port}`,
        ...{ connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" },
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      },
    });
    const [res, opened] = await once(sent.end(), "upgrade");
    expect(res.headers["sec-websocket-accept"]).toBe("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    return opened;
  }

  it("answers as it does alone, from its folder, at a port that it was told", async () => {
    const { status, json } = await get("/who");
    expect(status).toBe(200);
    expect(json).toMatchObject({ revision: 1, headers: { "x-forwarded-proto": "http" } });
    expect(json.port).toMatch(/^\d+$/);
    expect(json.cwd).not.toContain(folder);
    expect((await call("/missing?a=b", { method: "DELETE" })).text).toBe("DELETE /missing?a=b");
    expect((await call("/body", { body: { text: "x".repeat(3_000_000) } })).text).toBe("3000011");
    expect((await get("/large")).text.length).toBe(8 * 1024 * 1024);
    expect((await get("/garbage")).text).toMatch(/answered what is not HTTP/);
  });

  it("may start 64 processes, and no permission of Node holds it", async () => {
    const { json } = await get("/who");
    expect(json.options).toBe("");
    const { status, text } = await get("/fork");
    expect([status, Number(text) > 0]).toEqual([200, true]);
    const { settings } = await world.client.deployments.getDeployment({ deployment: "web" });
    expect(settings?.processes).toBe(0);
  });

  it("is started again when it has ended, with its last words in the log", async () => {
    expect((await get("/die")).status).toBe(503);
    const told = await world.until("web", ({ statusReason }) => statusReason.includes("code 7"));
    expect(told.statusReason).toMatch(
      /the program "node" at \/ ended with code 7.*the last words of the test/s,
    );
    await expect.poll(async () => (await get("/who")).status, { timeout: 20_000 }).toBe(200);
  });

  it("gets no requests while its health says no", async () => {
    await get("/sick");
    const said = async (): Promise<number> => {
      let lines = 0;
      const asked = { deployment: "web", search: "answers /health with 503" };
      for await (const _ of world.client.deployments.watchDeploymentLogs(asked)) {
        lines += 1;
      }
      return lines;
    };
    await expect.poll(said, { timeout: 20_000 }).toBeGreaterThan(0);
    // It waits until the health says yes again.
    expect((await get("/who")).status).toBe(200);
  }, 60_000);

  it("runs its requests as tasks where they may be", async () => {
    const folderOf = {
      "concurrency: 50": "concurrency: 50\nqueue: true",
      "name: web": "name: queued",
    };
    await world.deployed("queued", await build(folderOf));
    const submitted = await world.call("queued", "/body/submit", { body: { text: "a task" } });
    expect(submitted.status).toBe(202);
    const { task_id: id } = submitted.json;
    await expect
      .poll(
        async () => (await world.call("queued", `/body/get?task_id=${id}`, { method: "GET" })).text,
      )
      .toBe("17");
  }, 60_000);

  it("loses no request of a rolling update, and its WebSockets hear 1012", async () => {
    const open = await socket();
    open.write("as it is");
    expect(String((await once(open, "data"))[0])).toBe("as it is");
    const last = once(open, "data");
    const agent = new Agent({ keepAlive: true });
    const ended = new AbortController();
    const counts: Record<string, number> = {};
    const callers = Array.from({ length: 4 }, async () => {
      while (!ended.signal.aborted) {
        const { status, json } = await call("/who", { method: "GET", agent });
        const key = `${status} ${json?.revision}`;
        counts[key] = (counts[key] ?? 0) + 1;
      }
    });
    await world.deployed("web", await build({ "revision: 1": "revision: 2" }));
    expect((await last)[0]).toEqual(RESTART_FRAME);
    await expect.poll(() => counts["200 2"] ?? 0).toBeGreaterThan(100);
    ended.abort();
    await Promise.all(callers);
    agent.destroy();
    expect(Object.keys(counts).sort()).toEqual(["200 1", "200 2"]);
  }, 60_000);

  it("runs on a machine that has joined", async () => {
    const settings = { place: WorkerPlace.REMOTE };
    await world.deploy("away", await build({ "name: web": "name: away" }), { settings });
    await using agent = startAgent(world, {
      ...{ token: await workerToken(world, ["away"]), deployment: "away" },
      flags: ["--sandbox", "kernel"],
    });
    await world.until("away", ({ status }) => status === DeploymentStatus.READY);
    const answer = await world.call("away", "/who", { method: "GET" });
    expect(answer.json).toMatchObject({ revision: expect.any(Number), options: "" });
    expect(agent.pid).toBeGreaterThan(0);
  }, 60_000);

  it.each([
    [
      "listens elsewhere",
      { '"{port}"': '"9555"' },
      /does not listen on port \d+.*listening on 9555/s,
    ],
    ["ends at once", { "server.listen(": "process.exit(3); (" }, /ended with code 3/],
    [
      "goes to the background",
      { "server.listen(": "process.exit(0); (" },
      /ended with code 0: it has to stay in the foreground/,
    ],
    ["is unknown", { "[node,": "[llama-serve," }, /"llama-serve" at \/ is not there/],
    ["has no such health", { "/health\ncon": "/well\ncon" }, /answers \/well with 404/],
  ])(
    "that %s is refused with the reason",
    async (_, replacements, reason) => {
      await world.deploy("broken", await build(replacements), {
        settings: { readyTimeout: { seconds: 3n }, minWorkers: 1, maxWorkers: 1 },
      });
      const { statusReason } = await world.until(
        "broken",
        ({ status, statusReason: why }) => status === DeploymentStatus.FAILED && why !== "",
      );
      expect(statusReason).toMatch(reason);
      await world.client.deployments.deleteDeployment({ deployment: "broken" });
    },
    60_000,
  );
});

/** The artifact of the service in a folder, as `tessera deploy` builds it. */
async function built(home: string): Promise<BuiltArtifact> {
  const { program, include } = await deployPlan(home, { wait: true, git: false });
  return await buildArtifact(program as ProgramService, { include });
}
