/** Deployments at rest on a node that begins anew: their manifests are stored, and nothing starts. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, it, vi } from "vitest";
import { EndpointService } from "../../../gen/tessera/v1/endpoint_pb.js";
import { DeploymentStatus } from "../../../src/client/index.ts";
import { Reconciler } from "../../../src/hosting/reconciler.ts";
import { newPostgres } from "../start/databases.ts";
import { type Folder, start } from "../start/platform.ts";
import { artifact, reasonOf, until, World } from "./world.ts";

/** It says each time that it is loaded on a node. */
const LOUD = {
  "const VERSION": `if (import.meta.url.includes("/artifacts/")) console.log("loaded");
const VERSION`,
};
const AT_REST = { settings: { minWorkers: 0, maxWorkers: 1 } };
const say = { body: { text: "x" } };

/** The node of a world again, on the same database: what it had on its disk is gone. */
async function again(world: World, database?: string): Promise<World> {
  await world.platform[Symbol.asyncDispose]();
  rmSync(join(world.folder.data, "artifacts"), { recursive: true, force: true });
  const { folder, cookie } = world;
  const platform = await start(folder, { ...(database && { database }) });
  const { value: token } = await platform.createToken(cookie);
  return new World(platform, { folder, cookie, token });
}

/** What the workers and the node have logged of a deployment so far. */
async function logged(world: World, deployment: string): Promise<string[]> {
  const texts: string[] = [];
  for await (const { text } of world.client.deployments.watchDeploymentLogs({ deployment })) {
    texts.push(text);
  }
  return texts;
}

const loads = async (world: World, name: string): Promise<number> =>
  (await logged(world, name)).filter((text) => text === "loaded").length;

/** Once the manifest of a deployment is stored. */
async function stored(world: World, isSo = (manifest: string) => manifest !== ""): Promise<void> {
  await until(
    async () => row(world.folder, "SELECT manifest FROM manifests"),
    ({ manifest = "" }) => isSo(String(manifest)),
  );
}

function row(folder: Folder, sql: string): Record<string, unknown> {
  using database = new DatabaseSync(join(folder.data, "tessera.db"));
  return { ...database.prepare(sql).get() };
}

describe.each(["SQLite", "Postgres"])("deployments at rest on %s", (name) => {
  it("are ready on a node that begins anew, which starts no worker for them", async () => {
    const url = name === "Postgres" ? await newPostgres() : undefined;
    await using world = await World.start({ ...(url && { database: url }) });
    const names = ["a", "b", "c", "d", "e"];
    const built = await artifact("echo", LOUD);
    for (const name of names) {
      await world.deployed(name, built, AT_REST);
    }
    const later = { body: { text: "later" } };
    const { json } = await world.call("e", "/work/submit?delay=4", later);
    await using after = await again(world, url);
    for (const name of names) {
      await after.until(name, ({ status }) => status === DeploymentStatus.READY);
      const { workers, revision } = await after.client.deployments.getDeployment({
        deployment: name,
      });
      // The task of e may be due by now, which starts one for it.
      expect([name === "e" ? 0 : workers, revision]).toEqual([0, 1]);
    }
    expect((await after.call("a", "/say", say)).text).toBe("one x");
    await expect.poll(() => loads(after, "a")).toBe(2);
    // Who asks what it is hears so, and starts nothing.
    expect((await after.call("b", "/schema.json")).text).toContain("say");
    expect((await after.call("b", "/readyz")).status).toBe(200);
    expect(await loads(after, "b")).toBe(1);
    const result = await after.call("e", `/work/get?task_id=${json.task_id}&wait=20`);
    expect(result.text).toBe("one later");
    await after.deployed("c", await artifact("echo", { '"one"': '"two"' }));
    expect((await after.call("c", "/say", say)).text).toBe("two x");
  }, 120_000);
});

it("one at rest wakes for those who may call it alone, over every protocol", async () => {
  await using world = await World.start();
  const settings = { ...AT_REST, authorization: true };
  await world.deployed("echo", await artifact("echo", LOUD), settings);
  await stored(world);
  await using after = await again(world);
  using woken = vi.spyOn(Reconciler.prototype, "wake");
  const { url } = after.platform;
  const call = { deployment: "acme/echo", endpoint: "say" };
  const { value: good } = await after.platform.createToken(after.cookie, {
    access: ["protected_endpoint"],
    deployments: ["echo"],
  });
  for (const token of [undefined, "tsra_wrong"]) {
    const headers = { ...(token !== undefined && { authorization: `Bearer ${token}` }) };
    const origin = { origin: "https://elsewhere.example.com" };
    const answers = await Promise.all([
      after.call("echo", "/say", { ...say, headers }),
      after.call("echo", "/schema.json", { headers }),
      after.call("echo", "/work/status?task_id=x", { headers }),
      after.call("echo", "/say", { method: "OPTIONS", headers: { ...headers, ...origin } }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 401, expect.any(Number)]);
    for (const transport of [
      createConnectTransport({ baseUrl: url, httpVersion: "1.1" }),
      createGrpcTransport({ baseUrl: url }),
    ]) {
      const { callEndpoint } = createClient(EndpointService, transport);
      await expect(callEndpoint(call, { headers })).rejects.toThrow(/unauthenticated/);
    }
  }
  expect(woken).not.toHaveBeenCalled();
  expect((await after.call("echo", "/say", { ...say, token: good })).text).toBe("one x");
  expect(woken).toHaveBeenCalled();
}, 60_000);

describe("a stored manifest", () => {
  async function changed(sql: string, ...values: string[]): Promise<World> {
    const world = await World.start();
    await world.deployed("echo", await artifact("echo", LOUD), AT_REST);
    await stored(world);
    await world.platform[Symbol.asyncDispose]();
    using database = new DatabaseSync(join(world.folder.data, "tessera.db"));
    database.prepare(sql).run(...values);
    return world;
  }

  it("of a node with another form of it is not used: a worker tells it again", async () => {
    await using world = await changed("UPDATE manifests SET format = 999");
    await using after = await again(world);
    await after.until("echo", ({ status }) => status === DeploymentStatus.READY);
    await expect.poll(() => loads(after, "echo")).toBe(2);
    await until(
      async () => row(after.folder, "SELECT format FROM manifests").format,
      (format) => format === 1,
    );
  }, 60_000);

  it("that cannot be read is not used: a worker tells it at the first call", async () => {
    await using world = await changed("UPDATE manifests SET manifest = ?", '{"name": "echo", "en');
    await using after = await again(world);
    await after.until("echo", ({ status }) => status === DeploymentStatus.READY);
    await until(
      () => after.call("echo", "/say", say),
      ({ text }) => text === "one x",
    );
    await stored(after, (manifest) => manifest.includes('"say"'));
  }, 60_000);

  it("that its service contradicts ends with the first worker, and the log says so", async () => {
    await using world = await changed(
      `UPDATE manifests SET manifest = replace(manifest, '"say"', '"shout"')`,
    );
    await using after = await again(world);
    expect(reasonOf(await after.call("echo", "/say", say))).toBe("ENDPOINT_NOT_FOUND");
    const shouted = await after.call("echo", "/shout", say);
    expect([shouted.status, shouted.text]).toEqual([404, expect.stringContaining("shout")]);
    expect((await after.call("echo", "/say", say)).text).toBe("one x");
    await expect
      .poll(() => logged(after, "echo"))
      .toContainEqual(expect.stringContaining("tells another manifest than was stored"));
    await stored(after, (manifest) => manifest.includes('"say"'));
  }, 60_000);

  it("fails no task of an endpoint that only the first worker tells of", async () => {
    const world = await World.start();
    await world.deployed("echo", await artifact("echo", LOUD), AT_REST);
    const later = { body: { text: "later" } };
    const { json } = await world.call("echo", "/work/submit?delay=3600", later);
    await stored(world);
    await world.platform[Symbol.asyncDispose]();
    {
      using database = new DatabaseSync(join(world.folder.data, "tessera.db"));
      database.exec(`UPDATE manifests SET manifest = replace(manifest, '"work"', '"job"')`);
      database.exec("UPDATE tasks SET run_at_ms = 0");
    }
    await using after = await again(world);
    const result = async () => (await after.call("echo", `/work/get?task_id=${json.task_id}`)).text;
    await expect.poll(result, { timeout: 90_000 }).toBe("one later");
  }, 120_000);

  it("holds for no other settings, which are proved by a worker as ever", async () => {
    await using world = await changed("UPDATE deployments SET memory_mib = 300 WHERE 1 = 1");
    await using after = await again(world);
    await after.until("echo", ({ status }) => status === DeploymentStatus.READY);
    await expect.poll(() => loads(after, "echo")).toBe(2);
  }, 60_000);
});
