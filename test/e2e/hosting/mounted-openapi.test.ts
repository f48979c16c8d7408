/** What mounted servers say of their operations, in the document of their deployment. */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildArtifact } from "../../../src/artifacts/build.ts";
import { DeploymentStatus } from "../../../src/client/index.ts";
import { World } from "./world.ts";

const SERVICE = fileURLToPath(
  new URL("../../fixtures/services/serve/described.ts", import.meta.url),
);

interface Docs {
  readonly tags: readonly {
    readonly description?: string;
    readonly "x-tessera-mount"?: string;
  }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
}

describe("the OpenAPI documents of mounted servers", () => {
  let world: World;
  beforeAll(async () => {
    world = await World.start();
    await world.deployed("described", await buildArtifact(SERVICE), {
      settings: { minWorkers: 1, maxWorkers: 1 },
    });
  }, 120_000);
  afterAll(() => world?.[Symbol.asyncDispose]());

  const call = (path: string) => world.call("described", path);
  const docs = async () => (await call("/docs.json")).json as Docs;

  it("are part of that of their deployment, or left out with the reason", async () => {
    const { tags, paths, components } = await docs();
    expect(paths["/items/{number}"]?.put).toMatchObject({
      operationId: "server.put_items_number_",
      tags: ["the server at /"],
      summary: "Keep an item",
      requestBody: {
        content: {
          "application/json": { schema: { $ref: "#/components/schemas/server.Item" } },
        },
      },
    });
    expect(components.schemas["server.Item"]).toMatchObject({ required: ["name"] });
    expect(paths["/named/asked"]).toHaveProperty("get");
    expect(paths["/double"]?.post).toMatchObject({ operationId: "double" });
    const said = tags.flatMap(({ description, "x-tessera-mount": path }) =>
      path === undefined ? [] : [[path, description]],
    );
    const none = "A mounted server. Its operations are not here: ";
    expect(Object.fromEntries(said)).toEqual({
      "/": 'A mounted server, as it describes itself. Left out: "/double" is of an endpoint.',
      "/named": "A mounted server, as it describes itself.",
      "/off": `${none}its author says that it has no document.`,
      "/gone": `${none}GET /gone/openapi.json answered with 404.`,
      "/page": `${none}its document is no JSON of at most 50000 values.`,
      "/large": `${none}the documents of its service have more than 1 MiB together.`,
      "/slow": `${none}GET /slow/openapi.json was not answered within 3 s.`,
    });
  }, 30_000);

  it("are asked for once, and by no caller who has to wait", async () => {
    const fromMs = performance.now();
    const [one, other] = await Promise.all([docs(), docs()]);
    expect(other).toEqual(one);
    expect((await call("/named/asked")).json).toBe(1);
    expect(performance.now() - fromMs).toBeLessThan(2_500);
  });

  it("are not worth a worker to a deployment that sleeps", async () => {
    const deployment = "sleeps";
    const { deployments } = world.client;
    await world.deployed(deployment, await buildArtifact(SERVICE), {
      settings: { minWorkers: 0, maxWorkers: 1 },
    });
    await deployments.stopDeployment({ deployment });
    await world.until(
      deployment,
      ({ status, workers }) => status === DeploymentStatus.STOPPED && workers === 0,
    );
    await deployments.startDeployment({ deployment });
    await world.until(deployment, ({ status }) => status === DeploymentStatus.READY);
    const { tags } = (await world.call("sleeps", "/docs.json")).json as Docs;
    expect(tags.at(-1)?.description).toBe(
      "A mounted server. Its operations are not here: no worker is running that could be asked.",
    );
    expect((await deployments.getDeployment({ deployment })).workers).toBe(0);
    // It is asked as soon as one runs.
    await world.call("sleeps", "/double", { body: { number: 1 } });
    const woken = (await world.call("sleeps", "/docs.json")).json as Docs;
    expect(woken.paths).toHaveProperty(["/items/{number}"]);
  }, 60_000);
});
