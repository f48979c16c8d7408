/** Services in Python as deployments: built with their lock, and run by a node in the sandbox. */
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildArtifact } from "../../../src/artifacts/build.ts";
import type { BuiltArtifact } from "../../../src/artifacts/build-options.ts";
import { indexFiles } from "../../../src/artifacts/content.ts";
import { createIndex, digestOf, LOCK_NAME, writeIndex } from "../../../src/artifacts/index-file.ts";
import { leftOut } from "../../needed.ts";
import { skipped as noSandbox } from "../../pool/sandbox/available.ts";
import { pythonMissing } from "../clients/python-environment.ts";
import { World } from "../hosting/world.ts";
import type { PlatformOptions } from "../start/platform.ts";
import { lockLine, PackageIndex } from "./package-index.ts";
import { buildOptions, environmentsIn, indexEnv, type Tools, tools } from "./uv.ts";

const skipped = noSandbox || leftOut(pythonMissing);
const NOWHERE = "http://127.0.0.1:9/simple";
const MEBIBYTE = 1024 ** 2;

const SERVICE = `
import one
from tessera import api, service

@service
class Reader:
    @api
    def value(self) -> int:
        return one.VALUE
`;

describe.skipIf(skipped)(`a service in Python${skipped}`, () => {
  let found: Tools;
  let index: PackageIndex;
  let env: Record<string, string>;
  let folder: string;
  let world: World;
  let artifact: BuiltArtifact;

  /** Builds the service of these files. */
  const build = (
    files: Readonly<Record<string, string>>,
    {
      vendor = false,
      probe = undefined as "import" | "start" | undefined,
      fromSource = [] as string[],
      object = "",
      include = [] as string[],
    } = {},
  ) => {
    const home = mkdtempSync(join(folder, "service-"));
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(home, name)), { recursive: true });
      writeFileSync(join(home, name), text);
    }
    return buildArtifact(`${join(home, "service.py")}${object}`, {
      include,
      ...(probe && { probe }),
      python: { ...buildOptions(found, env), vendor, fromSource },
    });
  };
  const python = (maxBytesPerOrganization: number) => {
    const { version, path } = found.interpreter;
    const interpreters = [`${version}=${path}`];
    return { interpreters, needsSandbox: true, uv: found.uv, maxBytesPerOrganization };
  };
  const start = (options: PlatformOptions = {}) =>
    World.start({ env, ...options, config: { python: python(64 * MEBIBYTE), ...options.config } });

  beforeAll(async () => {
    if (skipped) {
      return;
    }
    found = await tools();
    folder = realpathSync(mkdtempSync(join(tmpdir(), "tessera-deploy-")));
    index = await PackageIndex.start();
    index.add("one", "1.0", { code: "VALUE = 41\n" });
    env = indexEnv(index.url);
    artifact = await build({ "service.py": SERVICE, "requirements.txt": "one\n" });
    world = await start({ config: { allowedEgress: [new URL(index.url).host] } });
  }, 300_000);
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]();
    await index?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  it("is deployed in several deployments at once, which share one environment with their next revisions", async () => {
    expect(artifact.index).toMatchObject({
      format: 2,
      entry: "service.py",
      python: { version: found.interpreter.version },
    });
    expect(artifact.index.platform).toBeUndefined();
    await Promise.all(["a", "b", "c"].map((name) => world.deployed(name, artifact)));
    for (const name of ["a", "b", "c"]) {
      expect(await world.call(name, "/value", { body: {} })).toMatchObject({ json: 41 });
    }
    const changed = SERVICE.replace("one.VALUE", "one.VALUE + 1");
    await world.deployed("a", await build({ "service.py": changed, "requirements.txt": "one\n" }));
    await expect.poll(async () => (await world.call("a", "/value", { body: {} })).json).toBe(42);
    expect(environmentsIn(world.folder.data)).toHaveLength(1);
    const said: string[] = [];
    for (const deployment of ["a", "b", "c"]) {
      const search = "installing packages";
      for await (const { text } of world.client.deployments.watchDeploymentLogs({
        deployment,
        search,
      })) {
        said.push(text);
      }
    }
    expect(said).toEqual([`installing packages for Python ${found.interpreter.version}`]);
  });

  describe("whose setup needs a GPU", () => {
    const needing = (options: string, setup: string) => ({
      "service.py": `
from tessera import api, service

@service(${options})
class Gpu:
    ${setup}
        raise RuntimeError("no GPU")

    @api
    def value(self) -> int:
        return 1
`,
      "requirements.txt": "",
    });

    it.each(["def setup(self) -> None:", "def __init__(self) -> None:"])(
      "is built where there is none, for a build constructs nothing: %s",
      async (setup) => {
        const { index: built } = await build(needing('requires={"gpu": "*"}', setup));
        expect(built.service).toMatchObject({ requires: { gpu: "*" } });
        const remote = await build(needing('place="remote"', setup));
        expect(remote.index.service).toMatchObject({ place: "remote" });
        const said = await build(needing('ready_timeout="15m"', setup));
        expect(said.index.service).toMatchObject({
          readyTimeoutMs: 900_000,
          endpoints: [{ name: "value" }],
        });
      },
    );

    it("is refused by a build that starts it, with what it raised", async () => {
      const wrong = build(needing("", "def setup(self) -> None:"), { probe: "start" });
      await expect(wrong).rejects.toThrow("setup of the service failed: RuntimeError: no GPU");
    });
  });

  /** The artifact with another lock, as somebody could send it who builds it by himself. */
  const locked = async (lock: string, version = found.interpreter.version) => {
    const files = new Map([...artifact.files, [LOCK_NAME, Buffer.from(lock)] as const]);
    const of = createIndex(artifact.index.service, await indexFiles(files), {
      entry: "service.py",
      python: { version },
    });
    return { ...artifact, index: of, digest: digestOf(writeIndex(of)), files };
  };

  it("finds what its libraries have downloaded again in its next worker", async () => {
    const downloading = `
import os
from pathlib import Path
from uuid import uuid4
from tessera import api, service

@service
class Downloading:
    @api
    def downloads(self) -> int:
        folder = Path(os.environ["HF_HOME"])
        folder.mkdir(exist_ok=True)
        (folder / uuid4().hex).touch()
        return len(list(folder.iterdir()))
`;
    const built = await build({ "service.py": downloading, "requirements.txt": "" });
    const { version } = await world.deployed("downloading", built);
    const downloads = async () =>
      (await world.call("downloading", "/downloads", { body: {} })).json;
    expect(await downloads()).toBe(1);
    await world.client.deployments.updateDeployment({
      deployment: { name: "downloading", settings: { env: { OTHER: "1" } }, version },
    });
    await expect.poll(downloads).toBeGreaterThan(1);
  });

  it("that brings its packages is deployed where no index is reached", async () => {
    const vendored = await build(
      { "service.py": SERVICE, "requirements.txt": "one\n" },
      { vendor: true },
    );
    expect(vendored.index.files.map(({ path }) => path)).toContain(
      "wheels/one-1.0-py3-none-any.whl",
    );
    expect(vendored.index.platform).toBe(`${process.platform}-${process.arch}-glibc`);
    await using alone = await start({
      env: { PATH: env.PATH ?? "", UV_DEFAULT_INDEX: NOWHERE, UV_HTTP_RETRIES: "0" },
    });
    await alone.deployed("a", vendored);
    expect(await alone.call("a", "/value", { body: {} })).toMatchObject({ json: 41 });
    await alone.deploy("b", await locked(lockLine(index.add("two", "1.0"))));
    const { statusReason } = await alone.until("b", (of) => /index/.test(of.statusReason));
    expect(statusReason).toContain("the package index cannot be reached");
  });

  it("is deployed with a package that was built where its developer is", async () => {
    index.addBuildable("sourced", "1.0", "VALUE = 43\n");
    const files = {
      "service.py": SERVICE.replaceAll("one", "sourced"),
      "requirements.txt": "sourced\n",
    };
    await expect(build(files)).rejects.toThrow(/no wheel[\s\S]*sourced[\s\S]*--build-from-source/);
    const built = await build(files, { fromSource: ["Sourced"] });
    const wheel = "wheels/sourced-1.0-py3-none-any.whl";
    const { sha256 } = built.index.files.find(({ path }) => path === wheel) ?? {};
    const lock = String(built.files.get(LOCK_NAME));
    const line = lock.split("\n").find((each) => each.startsWith("sourced==1.0"));
    expect(line?.match(/--hash=\S+/g)).toEqual([`--hash=sha256:${sha256}`]);
    expect((await build(files, { fromSource: ["sourced"] })).digest).toBe(built.digest);
    await using alone = await start({
      env: { PATH: env.PATH ?? "", UV_DEFAULT_INDEX: NOWHERE, UV_HTTP_RETRIES: "0" },
    });
    await alone.deployed("a", built);
    expect(await alone.call("a", "/value", { body: {} })).toMatchObject({ json: 43 });
  });

  it("is not built with a package from source that it does not need", async () => {
    const files = { "service.py": SERVICE, "requirements.txt": "one\n" };
    await expect(build(files, { fromSource: ["two"] })).rejects.toThrow(
      /two is to be built from source, and is not among the packages/,
    );
  });

  it.each([
    [
      "a wheel of another digest",
      () => `one==1.0 --hash=sha256:${"0".repeat(64)}\n`,
      /another one than its lock names[\s\S]*one==1.0/,
    ],
    [
      "a lock that fits other platforms only",
      () => lockLine(index.add("foreign", "1.0", { tag: "py3-none-win_amd64" })),
      /no wheel for this platform[\s\S]*foreign/,
    ],
    [
      "a package that has to be built",
      () => lockLine(index.addSource("built", "1.0", `open("${folder}/ran", "w")\n`)),
      /not built from source[\s\S]*built/,
    ],
    [
      "an index of its own",
      () => "--index-url https://evil.example/simple\n",
      /the lock of the service's packages is invalid: "--index-url/,
    ],
    [
      "an option in a marker",
      () => `one==1.0 ; python_version > '3' --no-hashes --hash=sha256:${"0".repeat(64)}\n`,
      /the marker of one, .* is, because of "--", no condition/,
    ],
    [
      "more packages than its organization has disk for",
      () =>
        lockLine(index.add("big", "1.0", { files: { "big/data.txt": "x".repeat(70_000_000) } })),
      /more than the \d+ MiB of disk that its organization has left/,
    ],
  ])("with %s says so, and what was serving goes on", async (what, lock, reason) => {
    const name = "refused";
    await world.deploy(name, await locked(lock()));
    const { statusReason } = await world.until(name, (of) => reason.test(of.statusReason));
    expect(statusReason, what).toMatch(reason);
    expect(readdirSync(folder)).not.toContain("ran");
    expect(await world.call("b", "/value", { body: {} })).toMatchObject({ json: 41 });
    // It would try again and again.
    await world.client.deployments.deleteDeployment({ deployment: name });
  });

  it("for a version of Python that the platform lacks is refused at once, with those that it has", async () => {
    await expect(world.deploy("d", await locked("", "3.99"))).rejects.toThrow(
      `is for Python 3.99, and the platform has ${found.interpreter.version}`,
    );
  });

  it("cannot set what the loader reads before the sandbox stands", async () => {
    await expect(
      world.deploy("d", artifact, { settings: { env: { LD_PRELOAD: "/evil.so" } } }),
    ).rejects.toThrow("LD_* may not be set");
  });

  it("is refused where nothing holds it", async () => {
    await using open = await start({ env: { ...env, TESSERA_SANDBOX: "permission" } });
    await expect(open.deploy("a", artifact)).rejects.toThrow(
      "services in Python run in the kernel's sandbox or not at all",
    );
  });

  it.each([
    [
      "whose package needs a library that the system lacks, by the name of the library",
      'import ctypes\nctypes.CDLL("libGL.so.1")\nctypes.CDLL("libtessera-none.so.7")\n',
      /service.py:\d: the system lacks the library lib(GL.so.1 \(in Debian and Ubuntu the package libgl1\)|tessera-none.so.7)/,
    ],
    [
      "whose package is missing from its lock",
      "import absent\n",
      /there is no module absent in the service's environment: add absent to its requirements.txt/,
    ],
    ["that reads the machine while it loads", 'open("/etc/passwd")\n', /FileNotFoundError/],
    ["that starts processes", "import os\nos.fork()\n", /PermissionError/],
  ])("is not built %s", async (_what, code, message) => {
    await expect(build({ "service.py": code })).rejects.toThrow(message);
  });

  it("is one of several in its file, reads what it includes, and reaches what it may", async () => {
    const code = `
import os
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen
from tessera import api, service

@service
class Words:
    @api
    def words(self) -> int:
        return len(Path(__file__).with_name("models").joinpath("words.txt").read_text())

    @api
    def reach(self, url: str) -> int:
        try:
            return urlopen(url, timeout=5).status
        except HTTPError as error:
            return error.code

    @api
    def proxies(self) -> list[str]:
        return sorted(name for name in os.environ if name.endswith("PROXY"))

@service
class Other:
    @api
    def words(self) -> int:
        return 0
`;
    const built = await build(
      { "service.py": code, "models/words.txt": "moon" },
      { object: ":Words", include: ["models/*"] },
    );
    expect(built.index.python).toMatchObject({ object: "Words" });
    await world.deployed("words", built);
    expect(await world.call("words", "/words", { body: {} })).toMatchObject({ json: 4 });
    const reach = async (host: string): Promise<unknown> => {
      // As 127.0.0.1 it would be the worker's own loopback, which is not proxied.
      const url = `http://${host.replace("127.0.0.1", "[::ffff:127.0.0.1]")}/simple/one/`;
      return (await world.call("words", "/reach", { body: { url } })).json;
    };
    expect(await reach(new URL(index.url).host)).toBe(200);
    expect(await reach(new URL(world.platform.url).host)).toBe(403);
    // It would keep HTTP clients from working that do not speak SOCKS.
    const { json } = await world.call("words", "/proxies", { body: {} });
    expect(json).not.toContain("ALL_PROXY");
  });
});
