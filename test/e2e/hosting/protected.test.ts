import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeIndex } from "../../../src/artifacts/index-file.ts";
import { errorFacts, type TesseraClient } from "../../../src/client/index.ts";
import { type Answer, artifact, CALLS, reasonOf, upload, World } from "./world.ts";

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
    // What a mounted server would have at a deeper path is not told from what nothing has.
    for (const [method, path] of [...CALLS, ["POST", "/v1/chat/completions"], ["GET", "/a/b/c"]]) {
      const headers = { "content-type": "application/json" };
      const isRpc = path.startsWith("/tessera.v1.");
      const answer = await world.call("echo", path, {
        method,
        headers,
        ...(isRpc && { body: {} }),
      });
      expect([path, answer.status, reasonOf(answer)]).toEqual([path, 401, "TOKEN_MISSING"]);
      expect(answer.headers["www-authenticate"]).toContain("Bearer");
    }
    expect((await world.call("echo", "/livez")).status).toBe(200);
    expect((await world.call("echo", "/readyz")).status).toBe(200);
  });

  it("tells who opens a path in a browser what to do, on a page without scripts", async () => {
    const accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    const open = (headers: Record<string, string>) =>
      world.call("echo", "/work/get?task_id=x", { method: "GET", headers });
    const page = await open({ accept });
    expect(page).toMatchObject({ status: 401, text: expect.stringMatching(/^<!doctype html>/) });
    expect(page.text).toContain("This needs a token");
    expect(page.text).not.toMatch(/<script|task_id/);
    expect(page.headers["content-security-policy"]).toMatch(
      /^default-src 'none'; style-src 'sha256-/,
    );
    expect(page.headers["www-authenticate"]).toBe('Bearer realm="tessera"');
    const wrong = await open({ accept, authorization: "Bearer wrong" });
    expect([wrong.status, wrong.text]).toEqual([401, expect.stringContaining("is not valid")]);
    for (const path of ["/schema.json", "/docs.json", "/metrics"]) {
      const document = await world.call("echo", path, { headers: { accept } });
      expect([path, document.status, document.text]).toEqual([path, 401, page.text]);
    }
    const program = await open({ accept: "application/json, text/html" });
    expect(reasonOf(program)).toBe("TOKEN_MISSING");
    const known = await open({ accept, authorization: `Bearer ${good}` });
    expect([known.status, reasonOf(known)]).toEqual([404, "TASK_NOT_FOUND"]);
  });

  it("has a page for who opens what is not there in a browser, as the platform has", async () => {
    const headers = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
    const own = await world.call("echo", "/nonsense", {
      method: "GET",
      headers: { ...headers, authorization: `Bearer ${good}` },
    });
    const { url } = world.platform;
    const platforms = await fetch(`${url}/nonsense`, { headers });
    for (const [status, text] of [
      [own.status, own.text],
      [platforms.status, await platforms.text()],
    ]) {
      expect([status, text]).toEqual([404, expect.stringContaining("There is no such page")]);
      expect(text).toContain('<a href="/">');
    }
    const program = await fetch(`${url}/nonsense`);
    expect(await program.json()).toMatchObject({ code: "not_found" });
  });

  it("answers tokens that are for it, and tells those that may see it what they lack", async () => {
    expect(await say({ token: good })).toMatchObject({ status: 200, text: "one x" });
    expect(await say({ token: await token({ all_deployments: true }) })).toMatchObject({
      status: 200,
    });
    const wrong = await say({ token: good }, "other");
    expect([wrong.status, reasonOf(wrong)]).toEqual([404, "DEPLOYMENT_NOT_FOUND"]);
    const developer = await token({ access: ["developer_operations"] });
    expect(reasonOf(await say({ token: developer }))).toBe("ACCESS_DENIED");
    const listed = await world.call("", "/api/v1/tasks?deployment=acme/other", {
      host: "localhost",
      token: good,
    });
    expect(listed.status).toBe(404);
  });

  it("decides before it reads the body", async () => {
    const answer = await world.call("echo", "/say", {
      method: "POST",
      headers: { "content-type": "application/json", "content-length": "1000000" },
    });
    expect(answer.status).toBe(401);
  });

  it("is opened by a revision of a token only where the token may call it", async () => {
    const built = await artifact();
    await upload(world.client, built);
    const deploy = ({ deployments }: TesseraClient, authorization?: boolean) =>
      deployments.createRevision({
        deployment: "other",
        index: Buffer.from(writeIndex(built.index)),
        ...(authorization !== undefined && { authorization }),
      });
    const elsewhere = await world.callerClient(["echo"]);
    for (const client of [world.client, elsewhere]) {
      const refused = await deploy(client, false).catch(errorFacts);
      expect(refused).toMatchObject({
        reason: "ACCESS_DENIED",
        metadata: { field: "authorization" },
      });
    }
    expect(await deploy(world.client)).toMatchObject({ authorization: true, targetRevision: 2 });
    const here = await world.callerClient(["other"]);
    expect(await deploy(here, false)).toMatchObject({ authorization: false, targetRevision: 3 });
    // It is open already: nothing is given away.
    expect(await deploy(world.client, false)).toMatchObject({ targetRevision: 4 });
  });

  it("opens and closes at once", async () => {
    const { deployments } = await world.callerClient();
    const set = (authorization: boolean) =>
      deployments.updateDeployment({
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
