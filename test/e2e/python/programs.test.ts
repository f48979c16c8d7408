/** Programs beside Python: of an environment of packages, and mounted by a service in Python. */
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildArtifact } from "../../../src/artifacts/build.ts";
import type { ProgramService } from "../../../src/artifacts/program.ts";
import { deployPlan } from "../../../src/cli/deploy/plan.ts";
import { leftOut } from "../../needed.ts";
import { skipped as noSandbox } from "../../pool/sandbox/available.ts";
import { pythonMissing } from "../clients/python-environment.ts";
import { World } from "../hosting/world.ts";
import { buildOptions, type Tools, tools } from "./uv.ts";

const skipped = noSandbox || leftOut(pythonMissing);

/** An application that uvicorn serves, at its own port. */
const APP = `
import json, os, sys

JSON = [(b"content-type", b"application/json")]

async def app(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError("no lifespan")
    if scope["path"] == "/die":
        print("the last words of the test", flush=True)
        os._exit(7)
    said = {"path": scope["path"], "interpreter": sys.executable, "cwd": os.getcwd()}
    await send({"type": "http.response.start", "status": 200, "headers": JSON})
    await send({"type": "http.response.body", "body": json.dumps(said).encode()})
`;

const BESIDE_FUNCTIONS = `
from tessera import api, mount, service

@service
class Both:
    server = mount("/v1", command=["uvicorn", "app:app", "--port", "{port}"], health="/health")

    @api
    def double(self, number: int) -> int:
        return 2 * number
`;

describe.skipIf(skipped)(`a program in Python that is deployed${skipped}`, () => {
  let found: Tools;
  let folder: string;
  let world: World;
  beforeAll(async () => {
    found = await tools();
    folder = realpathSync(mkdtempSync(join(tmpdir(), "tessera-programs-")));
    const { version, path } = found.interpreter;
    const python = {
      interpreters: [`${version}=${path}`],
      needsSandbox: true,
      uv: found.uv,
      maxBytesPerOrganization: 512 * 1024 ** 2,
    };
    world = await World.start({ env: process.env as Record<string, string>, config: { python } });
  }, 120_000);
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const folderWith = (files: Readonly<Record<string, string>>): string => {
    const home = mkdtempSync(join(folder, "program-"));
    for (const [name, text] of Object.entries({ "app.py": APP, ...files })) {
      writeFileSync(join(home, name), text);
    }
    return home;
  };
  const get = (name: string, path: string) => world.call(name, path, { method: "GET" });

  it("is a script of its environment, and needs no code of a service", async () => {
    const home = folderWith({
      "requirements.txt": "uvicorn\n",
      "tessera.yaml": `name: asgi\ncommand: [uvicorn, "app:app", --port, "8000"]\nport: 8000\n`,
    });
    const { program, include } = await deployPlan(home, { wait: true, git: false });
    const built = await buildArtifact(program as ProgramService, {
      include,
      python: buildOptions(found),
    });
    await world.deployed("asgi", built, { settings: { minWorkers: 2, maxWorkers: 2 } });
    const { json } = await get("asgi", "/x");
    expect(json.path).toBe("/x");
    expect(json.interpreter).toContain("environments");
    expect(json.cwd).not.toContain(home);
    expect((await get("asgi", "/die")).status).toBe(503);
    // Another time, where the next one was ready before anybody asked.
    let isTold = false;
    const dieAgain = async (): Promise<void> => {
      while (!isTold) {
        await get("asgi", "/die");
      }
    };
    const again = dieAgain();
    const told = await world
      .until("asgi", ({ statusReason }) => statusReason.includes("code 7"))
      .finally(() => {
        isTold = true;
      });
    await again;
    expect(told.statusReason).toContain('the program "uvicorn" at / ended with code 7');
    await expect.poll(async () => (await get("asgi", "/x")).status, { timeout: 60_000 }).toBe(200);
  }, 300_000);

  it("is mounted beside functions, and refused with its reason", async () => {
    const build = (source: string) =>
      buildArtifact(
        join(folderWith({ "requirements.txt": "uvicorn\n", "service.py": source }), "service.py"),
        { python: buildOptions(found) },
      );
    await world.deployed("both", await build(BESIDE_FUNCTIONS));
    expect((await get("both", "/v1/x")).json.path).toBe("/v1/x");
    expect((await world.call("both", "/double", { body: { number: 4 } })).text).toBe("8");
    await expect(build(BESIDE_FUNCTIONS.replace('"uvicorn", ', '"uvi\\0corn", '))).rejects.toThrow(
      "command must be a list of texts",
    );
    await world.deploy("both", await build(BESIDE_FUNCTIONS.replace('"app:app"', '"nothing:app"')));
    const { statusReason } = await world.until("both", ({ statusReason: why }) => why !== "");
    const failed = await world.until("both", ({ statusReason: why }) => why.includes("could not"));
    expect(statusReason).not.toBe("");
    expect(failed.statusReason).toMatch(/"uvicorn" at \/v1 ended with code 3.*nothing/s);
    expect((await get("both", "/v1/x")).status).toBe(200);
  }, 300_000);
});
