/** Models of BentoML's own store, with BentoML itself: deployed from where their author has them. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WorkerPlace } from "../../../src/client/index.ts";
import { leftOut } from "../../needed.ts";
import { skipped as noSandbox } from "../../pool/sandbox/available.ts";
import { Person } from "../cli/person.ts";
import { pythonMissing } from "../clients/python-environment.ts";
import { until, World } from "../hosting/world.ts";
import { hasJoined, startAgent, workerToken } from "../workers/agent-program.ts";
import { indexEnv, type Tools, tools } from "./uv.ts";

const skipped = noSandbox || leftOut(pythonMissing);

const SERVICE = `
from pathlib import Path
import bentoml

def text_of(model):
    return Path(model.path_of("weights.txt")).read_text()

@bentoml.service
class Reader:
    newest = bentoml.models.BentoModel("reader:latest")
    stored = bentoml.models.get("reader:v1")

    def __init__(self) -> None:
        self.texts = [text_of(self.newest), text_of(self.stored), text_of(bentoml.models.get("listed"))]

    @bentoml.api
    def read(self) -> list[str]:
        model = bentoml.models.get("reader")
        return [*self.texts, str(model.tag), text_of(bentoml.models.BentoModel("reader:v1").resolve())]

    @bentoml.api
    def write(self) -> str:
        try:
            Path(bentoml.models.get("reader").path_of("weights.txt")).write_text("other")
        except OSError as error:
            return type(error).__name__
        return "written"
`;

/** What BentoML writes beside the files of a model. */
const described = (name: string, version: string) => `
name: ${name}
version: ${version}
bentoml_version: 1.4.40
creation_time: "2026-01-01T00:00:00+00:00"
api_version: v1
module: ""
labels: {}
options: {}
metadata: {}
signatures: {}
context: { framework_name: "", framework_versions: {}, bentoml_version: 1.4.40, python_version: 3.11.7 }
`;

describe.skipIf(skipped)(`a service of BentoML with models of its store${skipped}`, () => {
  const env = indexEnv("");
  let found: Tools;
  let folder: string;
  let world: World;
  let ada: Person;

  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  /** Saves a version in the store of the author, as BentoML does. */
  const save = (name: string, version: string) => {
    const store = "home/models";
    write(`${store}/${name}/${version}/model.yaml`, described(name, version));
    write(`${store}/${name}/${version}/weights.txt`, `${name}:${version}`);
    write(`${store}/${name}/latest`, version);
  };
  const run = (...args: readonly string[]) =>
    ada.run(args, { env: { ...env, BENTOML_HOME: join(folder, "home") } });
  const deploy = () => run("deploy", join(folder, "service.py"), "--name", "reader");
  const read = async () => (await world.call("reader", "/read", { body: {} })).json;

  beforeAll(async () => {
    if (skipped) {
      return;
    }
    found = await tools();
    folder = realpathSync(mkdtempSync(join(tmpdir(), "tessera-bentoml-")));
    const python = {
      interpreters: [`${found.interpreter.version}=${found.interpreter.path}`],
      ...{ needsSandbox: true, uv: found.uv, maxBytesPerOrganization: 4 * 1024 ** 3 },
    };
    world = await World.start({ env, config: { python } });
    ada = new Person();
    const { value: input } = await world.platform.createToken(world.cookie);
    await ada.run(["cloud", "login", "--endpoint", world.platform.url, "--api-token", "-"], {
      input,
    });
    write("service.py", SERVICE);
    write("bentofile.yaml", "service: service:Reader\nmodels: [listed]\n");
    save("reader", "v1");
    save("reader", "v2");
    save("listed", "v7");
  }, 300_000);
  afterAll(async () => {
    ada?.[Symbol.dispose]();
    await world?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  it("finds them on the platform as on the machine of its author, and cannot change them", async () => {
    const deployed = await deploy();
    expect(deployed.stderr).toContain("Deployed revision 1 of reader");
    expect(await read()).toEqual(["reader:v2", "reader:v1", "listed:v7", "reader:v2", "reader:v1"]);
    expect(await world.call("reader", "/write", { body: {} })).toMatchObject({ text: "OSError" });
    const { models } = await world.client.models.listModels({});
    expect(models.map(({ name, versionCount }) => [name, versionCount])).toEqual([
      ["listed", 1],
      ["reader", 2],
    ]);
  }, 600_000);

  it("has the newest of its deploy, and those of its time after a rollback", async () => {
    save("reader", "v3");
    expect((await read())[3]).toBe("reader:v2");
    expect((await deploy()).stderr).toContain("Deployed revision 2 of reader");
    expect(await read()).toEqual(["reader:v3", "reader:v1", "listed:v7", "reader:v3", "reader:v1"]);
    const named = { deployment: "reader" };
    const { targetRevision } = await world.client.deployments.rollBackDeployment(named);
    await world.until("reader", ({ revision }) => revision === targetRevision);
    expect((await read())[3]).toBe("reader:v2");
  }, 600_000);

  it("finds them where its worker joins from another machine", async () => {
    const settings = { minWorkers: 0, maxWorkers: 1, place: WorkerPlace.REMOTE };
    await world.client.deployments.updateDeployment({ deployment: { name: "reader", settings } });
    const token = await workerToken(world, ["reader"]);
    const flags = ["--sandbox", "kernel", "--uv", found.uv];
    await using agent = startAgent(world, { token, deployment: "reader", env, flags });
    await hasJoined(agent);
    expect(await until(read, Array.isArray)).toContain("reader:v2");
  }, 600_000);

  it("is refused by the name of the model that its author does not have", async () => {
    rmSync(join(folder, "home/models/listed"), { recursive: true });
    const refused = await deploy();
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain("model listed: BentoML has no model listed here");
    expect(refused.stderr).toContain("model://NAME@VERSION");
  }, 600_000);
});
