/** What somebody learns of a deployment's secrets who may deploy to it, and may not use them. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeIndex } from "../../../src/artifacts/index-file.ts";
import {
  createTesseraClient,
  DeploymentStatus,
  errorFacts,
  type TesseraClient,
} from "../../../src/client/index.ts";
import { memberToken } from "../start/member.ts";
import { start } from "../start/platform.ts";
import { artifact, call, upload, World } from "./world.ts";

const DEVELOPER = "grace@example.com";
const SECRETS = { API_KEY: "of the production", OTHER: "another" };
const NAMES = Object.keys(SECRETS);

describe("the secrets of a deployment", () => {
  let world: World;
  let developer: TesseraClient;

  beforeAll(async () => {
    world = await World.start();
    const { platform, cookie } = world;
    const token = await memberToken(platform, cookie, DEVELOPER);
    developer = createTesseraClient({ url: platform.url, token });
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const copy = (version: string) => artifact("echo", { '"one"': `"${version}"` });

  /** What the workers have in their environment, and which code they run. */
  async function seen(name: string, variables: readonly string[] = NAMES) {
    const code = await world.call(name, "/say", { body: { text: "" } });
    const values = variables.map(async (variable) => {
      const answer = await world.call(name, "/variable", { body: { name: variable } });
      return answer.json as unknown;
    });
    return [code.text.trim(), ...(await Promise.all(values))];
  }

  async function deployAs(client: TesseraClient, name: string, version: string, rest: object = {}) {
    const built = await copy(version);
    await upload(client, built);
    const index = Buffer.from(writeIndex(built.index));
    return client.deployments.createRevision({ ...rest, deployment: name, index });
  }

  const becomes = (name: string, expected: readonly unknown[], variables = NAMES) =>
    expect.poll(() => seen(name, variables), { timeout: 20_000 }).toEqual(expected);

  it("are not given to new code of a member, until an admin confirms it", async () => {
    const name = "attacked";
    await deployAs(world.client, name, "one", { secrets: SECRETS });
    await becomes(name, ["one", ...Object.values(SECRETS)]);

    const deployed = await deployAs(developer, name, "thief");
    expect(deployed.secretsWithheld).toEqual(NAMES);
    await becomes(name, ["thief", null, null]);
    const { deployments: listed } = await developer.deployments.listDeployments({});
    expect(listed.find((one) => one.name === name)?.secretsWithheld).toEqual(NAMES);

    const { version } = await developer.deployments.getDeployment({ deployment: name });
    const refused = await developer.deployments
      .confirmSecrets({ deployment: name, version })
      .catch(errorFacts);
    expect(refused).toMatchObject({ reason: "ACCESS_DENIED" });
    const path = `/api/v1/deployments/${name}:confirmSecrets`;
    const late = await world.platform.call(path, { version: version - 1 }, world.cookie);
    expect([late.status, late.json.code]).toEqual([409, "aborted"]);
    expect(await seen(name)).toEqual(["thief", null, null]);

    const confirmed = await world.platform.call(path, { version }, world.cookie);
    expect(confirmed.status).toBe(200);
    expect(confirmed.json.secrets_withheld ?? []).toEqual([]);
    await becomes(name, ["thief", ...Object.values(SECRETS)]);
    const { revisions } = await world.client.deployments.listRevisions({ deployment: name });
    expect(
      revisions.map(({ createdBy, secretsConfirmedBy }) => [createdBy, secretsConfirmedBy]),
    ).toEqual([
      [DEVELOPER, "ada@example.com"],
      ["ada@example.com", "ada@example.com"],
    ]);
  });

  it("come back with code that has them, and not with code that a member left behind", async () => {
    const name = "returned";
    await deployAs(developer, name, "planted");
    await deployAs(world.client, name, "one", { secrets: SECRETS });
    await becomes(name, ["one", ...Object.values(SECRETS)]);
    const back = await developer.deployments.rollBackDeployment({ deployment: name, revision: 1 });
    expect(back.secretsWithheld).toEqual(NAMES);
    await becomes(name, ["planted", null, null]);
    // The admin who brings it back has not looked into it either.
    const again = await world.client.deployments.rollBackDeployment({
      deployment: name,
      revision: 1,
    });
    expect(again.secretsWithheld).toEqual(NAMES);
    const good = await developer.deployments.rollBackDeployment({ deployment: name, revision: 2 });
    expect(good.secretsWithheld).toEqual([]);
    await becomes(name, ["one", ...Object.values(SECRETS)]);
  });

  it("do not meet variables of a member, nor secrets that they replaced", async () => {
    const name = "diverted";
    await deployAs(world.client, name, "one", { secrets: SECRETS });
    const variables = [...NAMES, "API_URL"];
    await becomes(name, ["one", ...Object.values(SECRETS), null], variables);
    const env = { API_URL: "http://elsewhere" };
    const updated = await developer.deployments.updateDeployment({
      deployment: { name, settings: { env } },
    });
    expect(updated.secretsWithheld).toEqual(NAMES);
    await becomes(name, ["one", null, null, env.API_URL], variables);
    const replaced = await deployAs(developer, name, "one", { secrets: { OTHER: "mine" } });
    expect(replaced.secretsWithheld).toEqual(["API_KEY"]);
    await becomes(name, ["one", null, "mine", env.API_URL], variables);
  });

  it("are all given to the code that a member deploys with them", async () => {
    const name = "own";
    const deployed = await deployAs(developer, name, "one", { secrets: SECRETS });
    expect(deployed.secretsWithheld).toEqual([]);
    await becomes(name, ["one", ...Object.values(SECRETS)]);
    expect((await deployAs(developer, name, "two", { secrets: SECRETS })).secretsWithheld).toEqual(
      [],
    );
    expect((await deployAs(developer, name, "three")).secretsWithheld).toEqual(NAMES);
  });

  it("are used by a token of the organization", async () => {
    const { value: token } = await world.platform.createToken(world.cookie, {
      kind: "organization",
    });
    const ci = createTesseraClient({ url: world.platform.url, token });
    await deployAs(world.client, "built", "one", { secrets: SECRETS });
    expect((await deployAs(ci, "built", "two")).secretsWithheld).toEqual([]);
    await becomes("built", ["two", ...Object.values(SECRETS)]);
  });

  it("are not withheld where there are none", async () => {
    const deployed = await deployAs(developer, "plain", "one", { settings: { env: { A: "1" } } });
    expect(deployed.secretsWithheld).toEqual([]);
    await becomes("plain", ["one", "1"], ["A"]);
  });

  // The last one: it ends the platform.
  it("do not come to code of a member that serves in the place of confirmed code", async () => {
    const name = "standing-in";
    await deployAs(world.client, name, "one", { secrets: SECRETS });
    await deployAs(developer, name, "thief");
    await becomes(name, ["thief", null, null]);
    const broken = await artifact("echo", {
      'const VERSION = "one";':
        'const VERSION = "one"; if (process.env.API_KEY) throw new Error("broken");',
    });
    await world.deploy(name, broken);
    await world.until(name, ({ status }) => status === DeploymentStatus.FAILED);
    expect(await seen(name)).toEqual(["thief", null, null]);
    await world.platform[Symbol.asyncDispose]();
    await using again = await start(world.folder);
    const variable = { body: { name: "API_KEY" } };
    const ask = async () => (await call(again, name, "/variable", variable)).json;
    await expect.poll(ask, { timeout: 20_000 }).toBe(null);
    const text = { body: { text: "" } };
    expect((await call(again, name, "/say", text)).text).toBe("thief ");
  });
});
