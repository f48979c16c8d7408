/** The client of the platform's API in Python, on a platform. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { artifact, World } from "../hosting/world.ts";
import { type Environment, environment, pythonMissing, ROOT, run } from "./python-environment.ts";

const PROGRAM = fileURLToPath(new URL("platform_api_program.py", import.meta.url));
const LOGIN_PROGRAM = fileURLToPath(new URL("device_login_program.py", import.meta.url));
const SOURCES = join(ROOT, "clients/python/src");

const skipped = leftOut(pythonMissing);

describe.skipIf(skipped)(`the platform's API in Python${skipped}`, () => {
  let world: World;
  let made: Environment;
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "tessera-platform-api-"));
    const packages = ["anyio>=4", "httpx>=0.27,<1", "mypy>=1.15", "typing_extensions>=4.12"];
    made = await environment({ name: "platform-api", packages });
    world = await World.start();
    await world.deployed("echo", await artifact());
  }, 300_000);
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  it("manages tokens, deployments, tasks and members, with pages, streams and errors", async () => {
    const { value } = await world.platform.createToken(world.cookie, {
      access: ["developer_operations", "protected_endpoint"],
      all_deployments: true,
    });
    const said = await run(made.python, [PROGRAM], {
      env: {
        PYTHONPATH: SOURCES,
        SERVICE_CLOUD_API_ENDPOINT: world.platform.url,
        SERVICE_CLOUD_API_KEY: value,
      },
    });
    const made5 = [4, 3, 2, 1, 0].map((number) => `made ${number}`);
    expect(JSON.parse(said)).toEqual({
      tokens: {
        listed: [...made5, "of a test", "of a test"],
        changed: ["changed", 2],
        rotated: true,
        gone: ["NotFound", "not_found", "TOKEN_NOT_FOUND", expect.anything(), []],
      },
      refused: [
        ["Unauthenticated", "unauthenticated", "TOKEN_INVALID", expect.anything(), []],
        ["BadArguments", "invalid_argument", "REQUEST_INVALID", expect.anything(), ["name"]],
        ["NotFound", "not_found", "TOKEN_NOT_FOUND", expect.anything(), []],
        ["DeploymentNotFound", "not_found", "DEPLOYMENT_NOT_FOUND", {}, []],
      ],
      deployments: {
        name: "echo",
        ready: true,
        revisions: [1],
        watched: ["echo"],
        lines: true,
      },
      tasks: {
        same: true,
        success: true,
        took: true,
        states: ["QUEUED", "RUNNING", "SUCCESS"],
        result: "one a",
        cancelled: [
          "AlreadyFinished",
          "aborted",
          "TASK_FINISHED",
          { task_id: expect.any(String), status: "success" },
          [],
        ],
      },
      members: {
        organization: "acme",
        admin: true,
        // Of people, the signed-in ones decide.
        invited: ["PermissionDenied", "permission_denied", "ACCESS_DENIED", expect.anything(), []],
        invitations: [],
        audit: "token.delete",
      },
      async: [6, "echo", ["echo"], "TOKEN_NOT_FOUND", true],
    });
  }, 60_000);

  it("logs a program in for a person, who confirms or refuses in a browser", async () => {
    const child = spawn(made.python, [LOGIN_PROGRAM, world.platform.url], {
      stdio: ["ignore", "pipe", "inherit"],
      timeout: 60_000,
      env: { PATH: process.env.PATH, PYTHONPATH: SOURCES },
    });
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    const next = async () => (await lines.next()).value?.split(" ") ?? [];
    const answer = async (approve: boolean) => {
      const [code = "", url, complete] = await next();
      expect(url).toMatch(/^http:\/\/localhost:\d+\/device$/);
      expect(complete).toContain(code);
      const body = { user_code: code, approve, organization: "acme" };
      const path = "/api/v1/login:answerDevice";
      expect((await world.platform.call(path, body, world.cookie)).status).toBe(200);
    };
    await answer(true);
    expect(await next()).toEqual([expect.stringContaining("@"), "PERSONAL_TOKEN", "tsrp_"]);
    await answer(false);
    expect(await next()).toEqual(["LOGIN_DENIED"]);
  }, 60_000);

  it("has types: unknown methods and fields are refused", async () => {
    const args = ["-m", "mypy", "--strict", "--follow-imports", "silent", "--cache-dir", folder];
    const env = { MYPYPATH: SOURCES };
    const programs = [PROGRAM, LOGIN_PROGRAM];
    expect(await run(made.python, [...args, ...programs], { env })).toMatch(/^Success/);
    const wrong = [
      "from tessera import SyncPlatformClient",
      "c = SyncPlatformClient()",
      "c.tokens.make_token()",
      "c.tokens.get_token(token='x')",
      "next(iter(c.tokens.list_tokens())).nam",
    ].join("\n");
    const said = run(made.python, [...args, "-c", wrong], { env });
    await expect(said).rejects.toThrow(/make_token[\s\S]*argument "token"[\s\S]*"nam"/);
  }, 120_000);
});
