import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, artifact, reasonOf, World } from "./world.ts";

describe("a protected deployment", () => {
  let world: World;
  let good: string;

  beforeAll(async () => {
    world = await World.start();
    await world.deployed("echo", await artifact(), { authorization: true });
    await world.deployed("other", await artifact(), { authorization: true });
    good = await token({ deployments: ["echo"] });
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const token = async (fields: object): Promise<string> =>
    (
      await world.platform.createToken(world.cookie, {
        access: ["protected_endpoint"],
        ...fields,
      })
    ).value;
  const body = { text: "x" };
  const say = (options: { token?: string } = {}, name = "echo"): Promise<Answer> =>
    world.call(name, "/say", { body, ...options });

  it("answers nobody without a token, on any path but those of probes", async () => {
    for (const [method, path] of [
      ["POST", "/say"],
      ["POST", "/work/submit"],
      ["GET", "/work/status?task_id=x"],
      ["GET", "/work/get?task_id=x"],
      ["POST", "/work/cancel?task_id=x"],
      ["PUT", "/work/retry?task_id=x"],
      ["GET", "/work/events?task_id=x"],
      ["GET", "/schema.json"],
      ["GET", "/docs.json"],
      ["GET", "/api/v1/tasks"],
      ["GET", "/api/v1/endpoints"],
      ["POST", "/tessera.v1.EndpointService/CallEndpoint"],
    ] as const) {
      const headers = { "content-type": "application/json" };
      const isRpc = path.startsWith("/tessera.v1.");
      const answer = await world.call("echo", path, {
        method,
        headers,
        ...(isRpc && { body: {} }),
      });
      expect([path, answer.status, reasonOf(answer)]).toEqual([path, 401, "TOKEN_INVALID"]);
      expect(answer.headers["www-authenticate"]).toContain("Bearer");
    }
    expect((await world.call("echo", "/livez")).status).toBe(200);
    expect((await world.call("echo", "/readyz")).status).toBe(200);
  });

  it("answers tokens that are for it, and tells others what they lack", async () => {
    expect(await say({ token: good })).toMatchObject({ status: 200, text: "one x" });
    expect(await say({ token: await token({ all_deployments: true }) })).toMatchObject({
      status: 200,
    });
    const wrong = await say({ token: good }, "other");
    expect([wrong.status, reasonOf(wrong)]).toEqual([403, "ACCESS_DENIED"]);
    const developer = await token({ access: ["developer_operations"] });
    expect(reasonOf(await say({ token: developer }))).toBe("ACCESS_DENIED");
    const listed = await world.call("", "/api/v1/tasks?deployment=acme/other", {
      host: "localhost",
      token: good,
    });
    expect(listed.status).toBe(403);
  });

  it("decides before it reads the body", async () => {
    const answer = await world.call("echo", "/say", {
      method: "POST",
      headers: { "content-type": "application/json", "content-length": "1000000" },
    });
    expect(answer.status).toBe(401);
  });

  it("opens and closes at once", async () => {
    const set = (authorization: boolean) =>
      world.client.deployments.updateDeployment({
        deployment: { name: "echo", authorization },
        updateMask: { paths: ["authorization"] },
      });
    for (let round = 0; round < 3; round += 1) {
      await set(false);
      expect((await say()).status).toBe(200);
      await set(true);
      expect((await say()).status).toBe(401);
    }
    expect((await say({ token: good })).status).toBe(200);
  });
});
