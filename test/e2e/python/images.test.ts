/** A container image as the root of deployments, in Python and in TypeScript, and of a joined worker. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { buildArtifact } from "../../../src/artifacts/build.ts";
import type { BuiltArtifact } from "../../../src/artifacts/build-options.ts";
import { IMAGE_LOCK_NAME } from "../../../src/artifacts/index-file.ts";
import type { ProgramService } from "../../../src/artifacts/program.ts";
import { deployPlan } from "../../../src/cli/deploy/plan.ts";
import { DeploymentStatus, WorkerPlace } from "../../../src/client/index.ts";
import { leftOut } from "../../needed.ts";
import { skipped as noSandbox } from "../../pool/sandbox/available.ts";
import { copied, skipped as noRegistry, TestRegistry } from "../artifacts/registry.ts";
import { Person } from "../cli/person.ts";
import { goMissing, runGo } from "../clients/go-environment.ts";
import { pythonMissing, ROOT } from "../clients/python-environment.ts";
import { World } from "../hosting/world.ts";
import { hasJoined, startAgent, workerToken } from "../workers/agent-program.ts";
import { buildOptions, type Tools, tools } from "./uv.ts";

const skipped = noSandbox || noRegistry || leftOut(pythonMissing);
const MEBIBYTE = 1024 ** 2;
const BINARY = join(ROOT, "test/fixtures/programs/binary");

const service = (image: string): string => `
import multiprocessing, os, subprocess, sys
from tessera import api, service

def double(number: int) -> int:
    return number * 2

@service(name="reader", image="${image}", processes=8)
class Reader:
    @api
    def program(self) -> str:
        return subprocess.run(["greet", "/opt/acme/greeting"], capture_output=True, text=True, check=True).stdout

    @api
    def pool(self) -> list[int]:
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            return pool.map(double, [1, 2, 3])

    @api
    def root(self) -> dict[str, str]:
        found = {path: ",".join(sorted(os.listdir(path))) for path in ("/opt", "/etc/acme")}
        for path in ("/opt/acme/new", "/tmp/new"):
            try:
                open(path, "w").close()
                found[path] = "written"
            except OSError as err:
                found[path] = err.strerror
        return {**found, "WHO": os.environ["WHO"], "PLACE": os.environ["PLACE"], "PATH": os.environ["PATH"]}
`;

describe.skipIf(skipped)(`a container image of a service${skipped}`, () => {
  let found: Tools;
  let folder: string;
  let registry: TestRegistry;
  let world: World;
  /** With the index of packages of this machine. */
  let env: Record<string, string>;
  let image: string;
  let built: BuiltArtifact;

  beforeAll(async () => {
    if (skipped) {
      return;
    }
    found = await tools();
    folder = realpathSync(mkdtempSync(join(tmpdir(), "tessera-image-")));
    registry = await TestRegistry.open();
    env = { ...(process.env as Record<string, string>), SSL_CERT_FILE: registry.authorities() };
    const root = join(folder, "root");
    const put = (path: string, content: string | Buffer): void => {
      mkdirSync(join(root, path, ".."), { recursive: true });
      writeFileSync(join(root, path), content, { mode: 0o755 });
    };
    for (const [from, to] of [
      ["/lib64/ld-linux-x86-64.so.2", "lib64/ld-linux-x86-64.so.2"],
      ["/usr/lib/x86_64-linux-gnu/libc.so.6", "usr/lib/x86_64-linux-gnu/libc.so.6"],
      ["/bin/cat", "opt/acme/bin/greet"],
    ] as const) {
      put(to, copied(from, to).content ?? "");
    }
    put("opt/acme/greeting", "hello from the image");
    put("etc/acme/settings", "");
    image = registry.build("acme/reader", root, [
      ...["--env", "PATH=/opt/acme/bin:/bin", "--env", "WHO=image", "--env", "PLACE=image"],
    ]);
    writeFileSync(join(folder, "service.py"), service(image));
    writeFileSync(join(folder, "requirements.txt"), "");
    const { version, path } = found.interpreter;
    const python = {
      interpreters: [`${version}=${path}`],
      ...{ needsSandbox: true, uv: found.uv, maxBytesPerOrganization: 4_096 * MEBIBYTE },
    };
    world = await World.start({
      env,
      config: { python, allowedEgress: [registry.host] },
    });
    built = await build("service.py", process.env.PATH ?? "");
    await world.deploy("reader", built, {
      settings: { memoryMib: 512, env: { PLACE: "deployment" } },
    });
    await ready("reader");
  }, 300_000);
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]();
    await registry?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const build = async (name: string, searchPath: string): Promise<BuiltArtifact> =>
    await buildArtifact(join(folder, name), {
      lockImage,
      python: { ...buildOptions(found, env), searchPath },
    });

  const lockImage = async (name: string): Promise<string> =>
    (await world.client.deployments.lockImage({ image: name })).lock;

  const ready = async (deployment: string): Promise<void> => {
    await vi.waitFor(
      async () => {
        const { status, statusReason } = await world.client.deployments.getDeployment({
          deployment,
        });
        expect(statusReason).toBe("");
        expect(status).toBe(DeploymentStatus.READY);
      },
      { timeout: 120_000, interval: 250 },
    );
  };

  it("is pinned by the platform, and fetched with a line in the log", async () => {
    expect(built.index.files.map(({ path }) => path)).toContain(IMAGE_LOCK_NAME);
    expect(built.index.service.image).toBe(image);
    const said: string[] = [];
    for await (const { text } of world.client.deployments.watchDeploymentLogs({
      deployment: "reader",
      search: "the image",
    })) {
      said.push(text);
    }
    expect(said).toEqual([
      expect.stringMatching(`fetches the image ${image}: 0 of \\d+ MiB`),
      `unpacks the image ${image}`,
    ]);
  });

  it("has its programs on its own path, and starts processes of the interpreter", async () => {
    expect(await world.call("reader", "/program", { body: {} })).toMatchObject({
      text: "hello from the image",
    });
    expect(await world.call("reader", "/pool", { body: {} })).toMatchObject({ json: [2, 4, 6] });
  });

  it("is read-only, has a folder for temporary files, and variables below the deployment's own", async () => {
    expect(await world.call("reader", "/root", { body: {} })).toMatchObject({
      json: {
        "/etc/acme": "settings",
        "/opt/acme/new": "Read-only file system",
        "/tmp/new": "written",
        ...{ WHO: "image", PLACE: "deployment", PATH: "/opt/acme/bin:/bin" },
      },
    });
  });

  it("is the root of a service in TypeScript, too", async () => {
    writeFileSync(
      join(folder, "service.ts"),
      `
        import { execFileSync } from "node:child_process";
        import { readFileSync } from "node:fs";
        import { api, service } from "tessera-platform";
        export default service({
          name: "script", image: "${image}", processes: 4,
          endpoints: {
            read: api({}, () => [
              readFileSync("/opt/acme/greeting", "utf8"),
              execFileSync("greet", ["/opt/acme/greeting"]).toString(),
            ]),
          },
        });`,
    );
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
    const script = await buildArtifact(join(folder, "service.ts"), { lockImage });
    await world.deploy("script", script, {});
    await ready("script");
    expect(await world.call("script", "/read", { body: {} })).toMatchObject({
      json: ["hello from the image", "hello from the image"],
    });
  }, 60_000);

  it.skipIf(leftOut(goMissing))(
    "is the root of a program that is a binary, and needs neither Python, Node nor a shell",
    async () => {
      const root = join(folder, "bare");
      mkdirSync(join(root, "opt"), { recursive: true });
      await runGo("go", ["build", "-o", join(root, "opt/server"), "."], { cwd: BINARY });
      const bare = registry.build("acme/bare", root, []);
      const home = join(folder, "program");
      mkdirSync(home);
      const settings = ["name: bare", "command: [/opt/server]", `image: ${bare}`];
      writeFileSync(join(home, "tessera.yaml"), settings.join("\n"));
      const plan = await deployPlan(home, { wait: true, git: false });
      const program = plan.program as ProgramService;
      await world.deploy("bare", await buildArtifact(program, { image: bare, lockImage }), {});
      await ready("bare");
      expect((await world.call("bare", "/x", { method: "GET" })).text).toBe("GET /x, shell: false");
    },
    120_000,
  );

  it("is there while a service in TypeScript is built that does not load without it", async () => {
    writeFileSync(
      join(folder, "needs.ts"),
      `
        import { readFileSync } from "node:fs";
        import { api, service } from "tessera-platform";
        const greeting = readFileSync("/opt/acme/greeting", "utf8");
        export default service({ name: "needs", endpoints: { read: api({}, () => greeting) } });`,
    );
    const options = { lockImage, python: { ...buildOptions(found, env) } };
    await expect(buildArtifact(join(folder, "needs.ts"), options)).rejects.toThrow(
      "/opt/acme/greeting",
    );
    const needs = await buildArtifact(join(folder, "needs.ts"), { ...options, image });
    await world.deploy("needs-script", needs, { settings: { place: WorkerPlace.REMOTE } });
    const agent = startAgent(world, {
      token: await workerToken(world, ["needs-script"]),
      deployment: "needs-script",
      flags: ["--sandbox", "kernel", "--allow-egress", registry.host],
      env,
    });
    await hasJoined(agent);
    await ready("needs-script");
    expect(await world.call("needs-script", "/read", { body: {} })).toMatchObject({
      json: "hello from the image",
    });
    await agent.stop();
  }, 120_000);

  it("is named by tessera.yaml, before the one that the code names", async () => {
    const project = join(folder, "project");
    mkdirSync(project);
    writeFileSync(join(project, "service.py"), service("nobody.example/has/it"));
    writeFileSync(join(project, "requirements.txt"), "");
    writeFileSync(
      join(project, "tessera.yaml"),
      `service: service.py\nname: by-file\nimage: ${image}\nenv: { PLACE: file }\n`,
    );
    using ada = new Person();
    const { value } = await world.platform.createToken(world.cookie);
    const login = ["cloud", "login", "--endpoint", world.platform.url, "--api-token", "-"];
    await ada.run(login, { input: `${value}\n` });
    const deployed = await ada.run(
      ["deploy", project, "--python", found.interpreter.path, "--memory", "512Mi"],
      { env: { ...env, TESSERA_UV: found.uv } },
    );
    expect(deployed).toMatchObject({ code: 0 });
    expect(await world.call("by-file", "/program", { body: {} })).toMatchObject({
      text: "hello from the image",
    });
  }, 120_000);

  it("is fetched by a worker that joined, and the root of its processes", async () => {
    await world.deploy("joined", built, {
      settings: { place: WorkerPlace.REMOTE, env: { PLACE: "joined" } },
    });
    const agent = startAgent(world, {
      token: await workerToken(world, ["joined"]),
      deployment: "joined",
      flags: [
        ...["--sandbox", "kernel", "--uv", found.uv, "--allow-egress", registry.host],
        ...["--python", `${found.interpreter.version}=${found.interpreter.path}`],
      ],
      env,
    });
    await hasJoined(agent);
    await ready("joined");
    expect(await world.call("joined", "/program", { body: {} })).toMatchObject({
      text: "hello from the image",
    });
    await agent.stop();
  }, 120_000);

  it("is there while a service is built that does not load without it, and it is said when it cannot be", async () => {
    const path = join(folder, "needs.py");
    writeFileSync(
      path,
      `open("/opt/acme/greeting").close()\n${service(image).replace('"reader"', '"needs"')}`,
    );
    const needs = await build("needs.py", process.env.PATH ?? "");
    expect(needs.index.name).toBe("needs");
    const other = registry.push("acme/other", { layers: [[{ path: "x" }]] });
    writeFileSync(path, `open("/opt/acme/greeting").close()\n${service(other)}`);
    const without = join(folder, "programs");
    mkdirSync(without);
    for (const program of ["bwrap", "prlimit"]) {
      symlinkSync(`/usr/bin/${program}`, join(without, program));
    }
    await expect(build("needs.py", without)).rejects.toThrow(
      /No such file or directory: '\/opt\/acme\/greeting'[\s\S]*without its image, which this machine cannot have: .* has no skopeo/,
    );
  }, 60_000);

  it("is named when there is none, or its registry may not be reached", async () => {
    const lock = (name: string) => world.client.deployments.lockImage({ image: name });
    await expect(lock(`${registry.host}/absent`)).rejects.toThrow("has no");
    await expect(lock("127.0.0.1:9/acme/reader")).rejects.toThrow("is a loopback address");
    await expect(lock("--help")).rejects.toThrow("is no name of a container image");
    await expect(lock("oci:/etc")).rejects.toThrow("is no name of a container image");
  });
});
