import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { writeIndex } from "../../../src/artifacts/index-file.ts";
import {
  createTesseraClient,
  type Deployment,
  DeploymentStatus,
  type TesseraClient,
} from "../../../src/client/index.ts";
import { bearer } from "../start/platform.ts";
import { artifact, call, reasonOf, until, upload, World } from "./world.ts";

const OPERATOR = "of-the-operator";

let world: World;
/** Clients of two organizations. */
let clients: { readonly acme: TesseraClient; readonly globex: TesseraClient };
type Organization = keyof typeof clients;

beforeAll(async () => {
  const env = { TESSERA_MAX_WORKERS: "2", TESSERA_METRICS_TOKEN: OPERATOR };
  world = await World.start({ env });
  const { platform, cookie } = world;
  await platform.call("/api/v1/organizations", { name: "globex" }, cookie);
  const { value: token } = await platform.createToken(cookie, { organization: "globex" });
  clients = { acme: world.client, globex: createTesseraClient({ url: platform.url, token }) };
});
afterAll(() => world[Symbol.asyncDispose]());

afterEach(async () => {
  for (const { deployments } of Object.values(clients)) {
    for (const { name } of (await deployments.listDeployments({})).deployments) {
      await deployments.deleteDeployment({ deployment: name, force: true });
    }
  }
  await until(
    () => measured("tessera_node_workers"),
    (workers) => workers === 0,
  );
});

/** Deploys the echo with so many workers, and does not wait for it. */
async function deploy(
  organization: Organization,
  name: string,
  [minWorkers, maxWorkers]: readonly [number, number],
  version = "one",
): Promise<void> {
  const built = await artifact("echo", { '"one"': `"${version}"` });
  const { deployments } = clients[organization];
  await upload(clients[organization], built);
  const index = Buffer.from(writeIndex(built.index));
  await deployments.createRevision({
    deployment: name,
    index,
    settings: { minWorkers, maxWorkers },
  });
}

function become(
  organization: Organization,
  name: string,
  isSo: (deployment: Deployment) => boolean,
): Promise<Deployment> {
  return until(() => clients[organization].deployments.getDeployment({ deployment: name }), isSo);
}

const isReady = ({ status }: Deployment): boolean => status === DeploymentStatus.READY;

async function deployed(...args: Parameters<typeof deploy>): Promise<void> {
  await deploy(...args);
  await become(args[0], args[1], isReady);
}

/** Calls an endpoint of the echo. */
function say(organization: Organization, name: string, path: string, body: object = { text: "x" }) {
  const host = `${name}.${organization}.apps.localhost:${world.platform.started.port}`;
  return call(world.platform, name, path, { host, ...(path.includes("?") ? {} : { body }) });
}

/** A number on the node's page of metrics. */
async function measured(metric: string): Promise<number> {
  const res = await fetch(`${world.platform.url}/metrics`, { headers: bearer(OPERATOR) });
  const line = (await res.text()).split("\n").find((text) => text.startsWith(`${metric}{`));
  return Number(line?.split(" ")[1]);
}

describe("a node with room for two workers", () => {
  it("lets a third deployment wait for room, says so, and starts it when another leaves", async () => {
    await deployed("acme", "one", [1, 1]);
    await deployed("acme", "two", [1, 1]);
    await deploy("globex", "three", [1, 1]);
    const { status, statusReason } = await become("globex", "three", ({ statusReason }) =>
      statusReason.includes("waiting"),
    );
    expect(status).toBe(DeploymentStatus.STARTING);
    expect(statusReason).toBe(
      "revision 1 is waiting for room on a node: it runs the 2 workers that it may (tessera start --max-workers)",
    );
    expect(await measured("tessera_node_workers_limit")).toBe(2);
    expect(await measured("tessera_node_workers")).toBe(2);
    expect(await measured("tessera_node_waiting")).toBe(1);
    expect(await measured("tessera_node_workers_memory_bytes")).toBeGreaterThan(100 * 1024 ** 2);
    const refused = await say("globex", "three", "/say");
    expect([refused.status, reasonOf(refused)]).toEqual([503, "NO_WORKER"]);
    expect(refused.text).toContain("waiting for room on a node");
    await clients.acme.deployments.stopDeployment({ deployment: "one" });
    await become("globex", "three", isReady);
    expect((await say("globex", "three", "/say")).text).toBe("one x");
    expect(await measured("tessera_node_waiting")).toBe(0);
  });

  it("evicts an idle worker for a call of somebody else, and no worker of a minimum", async () => {
    await deployed("acme", "kept", [1, 1]);
    await deployed("acme", "sleepy", [0, 1]);
    await deployed("globex", "waking", [0, 1]);
    const before = await measured("tessera_node_evictions_total");
    expect((await say("acme", "sleepy", "/say")).text).toBe("one x");
    expect((await say("globex", "waking", "/say")).text).toBe("one x");
    expect(await measured("tessera_node_evictions_total")).toBe(before + 1);
    const { workers } = await become("acme", "sleepy", ({ workers }) => workers === 0);
    expect(workers).toBe(0);
    expect((await become("acme", "kept", isReady)).workers).toBe(1);
    // It wakes again for a call, and nobody has to wait but for the start.
    expect((await say("acme", "sleepy", "/say")).text).toBe("one x");
  });

  it("keeps the tasks of a deployment that finds no room in the queue", async () => {
    await deployed("globex", "later", [0, 1]);
    await deployed("acme", "busy", [2, 2]);
    const submitted = await say("globex", "later", "/work/submit");
    const { status } = await become("globex", "later", ({ statusReason }) =>
      statusReason.startsWith("0 workers are ready; waiting for room on a node: "),
    );
    expect(status).toBe(DeploymentStatus.DEGRADED);
    const id = submitted.json.task_id;
    expect((await say("globex", "later", `/work/status?task_id=${id}`)).json.status).toBe("queued");
    await clients.acme.deployments.stopDeployment({ deployment: "busy" });
    expect((await say("globex", "later", `/work/get?task_id=${id}&wait=20`)).text).toBe("one x");
  });

  it("rolls out a revision of a deployment that holds all the room, without a gap", async () => {
    await deployed("acme", "rolling", [2, 2]);
    await deploy("acme", "rolling", [2, 2], "two");
    const said = new Set<string>();
    await until(
      async () => said.add((await say("acme", "rolling", "/say")).text),
      (texts) => texts.has("two x"),
    );
    expect([...said].filter((text) => !/^(one|two) x$/.test(text))).toEqual([]);
    await become("acme", "rolling", (it) => isReady(it) && it.workers === 2 && it.revision === 2);
    await until(
      () => measured("tessera_node_workers"),
      (workers) => workers === 2,
    );
  });
});
