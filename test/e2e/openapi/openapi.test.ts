/** Both OpenAPI documents are true: what they allow is taken, and what they list is answered. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { OPENAPI_PATH } from "../../../scripts/http-reference.ts";
import { serveService } from "../../../src/app/serve.ts";
import { readServeConfig } from "../../../src/config/serve.ts";
import { leftOut } from "../../needed.ts";
import { pythonMissing } from "../clients/python-environment.ts";
import { artifact, World } from "../hosting/world.ts";
import { callAll } from "./schemathesis.ts";

const SERVICE = fileURLToPath(new URL("service.ts", import.meta.url));
const TOKEN = "a-token-of-the-test";

/** Besides the run itself, which may be one of hours. */
const TIMEOUT_MS = 240_000 + Number(process.env.TESSERA_SCHEMATHESIS_SECONDS ?? 0) * 1_000;

const skipped = leftOut(pythonMissing);

it.skipIf(skipped !== "")(
  `is kept by the platform${skipped}`,
  async () => {
    await using world = await World.start();
    const { platform, cookie } = world;
    const { value: token, id } = await platform.createToken(cookie, {
      access: ["developer_operations", "protected_endpoint"],
      all_deployments: true,
    });
    const spare = await platform.createToken(cookie, { name: "spare" });
    await world.deployed("echo", await artifact(), { settings: { minWorkers: 1, maxWorkers: 1 } });
    const submitted = await world.call("echo", "/work/submit", { body: { text: "one" }, token });
    const me = (await platform.call("/api/v1/me", undefined, cookie)).json as { user_id: string };
    const own = { organization: "acme", deployment: "acme/echo", endpoint: "work" };
    const session = Object.values(cookie).join().split("=")[1] ?? "";
    await callAll(
      platform.url,
      { token, session },
      {
        path: {
          ...own,
          ...{ deployment: "echo", name: "echo" },
          ...{ task_id: submitted.json.task_id, token_id: spare.id },
        },
        query: own,
        body: own,
        kept: ["echo", id, me.user_id],
      },
    );
  },
  TIMEOUT_MS,
);

it.skipIf(skipped !== "")(
  `is kept by a deployment with every kind of schema${skipped}`,
  async () => {
    const { config } = readServeConfig(SERVICE, { port: "0", workers: "1" }, {});
    const served = await serveService({ ...config, logLevel: "silent" }, { token: TOKEN });
    const url = `http://127.0.0.1:${served.port}`;
    try {
      const submitted = await fetch(`${url}/tree/submit`, {
        method: "POST",
        headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
        body: JSON.stringify({ tree: { name: "root" } }),
      });
      const task = (await submitted.json()) as { task_id: string };
      const known = { task_id: task.task_id };
      await callAll(url, { token: TOKEN }, { query: known, body: known });
    } finally {
      await served.stop();
    }
  },
  TIMEOUT_MS,
);

it("is at /docs.json of the platform as it is in docs/, and at that of a deployment as before", async () => {
  await using world = await World.start();
  await world.deployed("echo", await artifact());
  const answer = await world.platform.call("/docs.json");
  expect(answer.status).toBe(200);
  expect(answer.json).toEqual(JSON.parse(readFileSync(OPENAPI_PATH, "utf8")));
  const named = await world.platform.call("/docs.json", undefined, {
    "tessera-deployment": "acme/echo",
  });
  expect(Object.keys(named.json.paths as object)).toContain("/say");
  const own = await world.call("echo", "/docs.json");
  expect(Object.keys(own.json.paths)).toContain("/say");
});
