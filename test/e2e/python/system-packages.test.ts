/**
 * Programs of system packages in the sandbox of a deployment, from Debian's archive, by the
 * packages for Python that people call them with.
 */
import { mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { buildArtifact } from "../../../src/artifacts/build.ts";
import type { BuiltArtifact } from "../../../src/artifacts/build-options.ts";
import { SYSTEM_LOCK_NAME } from "../../../src/artifacts/index-file.ts";
import { DeploymentStatus, WorkerPlace } from "../../../src/client/index.ts";
import { skipped as noApt } from "../../artifacts/layers/archive.ts";
import { leftOut } from "../../needed.ts";
import { skipped as noSandbox } from "../../pool/sandbox/available.ts";
import { pythonMissing, ROOT } from "../clients/python-environment.ts";
import { World } from "../hosting/world.ts";
import { hasJoined, startAgent, workerToken } from "../workers/agent-program.ts";
import { buildOptions, type Tools, tools } from "./uv.ts";

const skipped = noSandbox || noApt || leftOut(pythonMissing);
const MEBIBYTE = 1024 ** 2;

const SERVICE = `
import io, os, subprocess, wave
from PIL import Image, ImageDraw
from pdf2image import convert_from_path
import pytesseract
from tessera import api, service

@service(processes=16, packages=["ffmpeg", "poppler-utils", "tesseract-ocr"])
class Media:
    @api
    def sound(self) -> list[str]:
        with wave.open("in.wav", "wb") as out:
            out.setparams((1, 2, 8000, 0, "NONE", ""))
            out.writeframes(bytes(16000))
        said = subprocess.run(["ffmpeg", "-v", "error", "-i", "in.wav", "out.flac"],
                              capture_output=True, text=True)
        with open("out.flac", "rb") as made:
            return [said.stderr, made.read(4).decode()]

    @api
    def page(self) -> str:
        picture = Image.new("RGB", (600, 120), "white")
        ImageDraw.Draw(picture).text((20, 20), "Tessera reads", fill="black", font_size=64)
        picture.save("page.pdf")
        [page] = convert_from_path("page.pdf", dpi=150)
        return pytesseract.image_to_string(page).strip()

    @api
    def bare(self) -> str:
        """A program that is started without any variable finds its libraries, too."""
        said = subprocess.run(["/usr/bin/pdftoppm", "-v"], env={}, capture_output=True, text=True)
        return said.stderr.split()[0]

    @api
    def outside(self) -> list[bool]:
        return [os.path.exists(path) for path in ("/etc/passwd", "/usr/bin/apt-get", "/usr/bin/git")]
`;

describe.skipIf(skipped)(`system packages of a service in Python${skipped}`, () => {
  let found: Tools;
  let folder: string;
  let world: World;
  let artifact: BuiltArtifact;

  beforeAll(async () => {
    if (skipped) {
      return;
    }
    found = await tools();
    folder = realpathSync(mkdtempSync(join(tmpdir(), "tessera-system-")));
    writeFileSync(join(folder, "service.py"), SERVICE);
    writeFileSync(join(folder, "requirements.txt"), "pdf2image\npytesseract\npillow>=10.1\n");
    const { version, path } = found.interpreter;
    const python = {
      interpreters: [`${version}=${path}`],
      ...{ needsSandbox: true, uv: found.uv, maxBytesPerOrganization: 4_096 * MEBIBYTE },
    };
    world = await World.start({
      env: { ...process.env } as Record<string, string>,
      config: { python },
    });
    artifact = await build("service.py");
    await world.deploy("media", artifact, { settings: { memoryMib: 1_024 } });
    await vi.waitFor(
      async () => {
        const deployment = await world.client.deployments.getDeployment({ deployment: "media" });
        expect(deployment.statusReason).toBe("");
        expect(deployment.status).toBe(DeploymentStatus.READY);
      },
      { timeout: 240_000, interval: 500 },
    );
  }, 300_000);
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const build = async (name: string, packages: readonly string[] = []): Promise<BuiltArtifact> =>
    await buildArtifact(join(folder, name), {
      packages,
      lockSystem: async (packages) =>
        (await world.client.deployments.lockSystemPackages({ packages: [...packages] })).lock,
      python: buildOptions(found),
    });

  it("are locked by the platform, and installed with progress where it runs", async () => {
    expect(artifact.index.files.map(({ path }) => path)).toContain(SYSTEM_LOCK_NAME);
    expect(artifact.index.service.packages).toEqual(["ffmpeg", "poppler-utils", "tesseract-ocr"]);
    const said: string[] = [];
    for await (const { text } of world.client.deployments.watchDeploymentLogs({
      deployment: "media",
      search: "installs system packages",
    })) {
      said.push(text);
    }
    expect(said.at(-1)).toMatch(/^installs system packages: (\d+) of \1 MiB$/);
  });

  it("convert a sound, turn a page into text, and find their libraries without variables", async () => {
    expect(await world.call("media", "/sound", { body: {} })).toMatchObject({ json: ["", "fLaC"] });
    expect(await world.call("media", "/page", { body: {} })).toMatchObject({
      text: "Tessera reads",
    });
    expect(await world.call("media", "/bare", { body: {} })).toMatchObject({ text: "pdftoppm" });
  }, 60_000);

  it("are there while a service is built that does not load without them", async () => {
    writeFileSync(
      join(folder, "greeter.py"),
      [
        "import os",
        "from tessera import api, service",
        'assert os.path.exists("/usr/bin/hello")',
        '@service(packages=["hello"])',
        "class Greeter:",
        "    @api",
        "    def greet(self) -> str: return 'hello'",
      ].join("\n"),
    );
    const greeter = await build("greeter.py");
    expect(greeter.index.service.packages).toEqual(["hello"]);
  }, 120_000);

  it("are there for a service in TypeScript, while it is built, too, on a worker that joined", async () => {
    writeFileSync(
      join(folder, "service.ts"),
      `
        import { execFileSync } from "node:child_process";
        import { accessSync } from "node:fs";
        import { api, service } from "tessera-platform";
        accessSync("/usr/bin/hello");
        export default service({
          name: "script", processes: 2,
          endpoints: { greet: api({}, () => execFileSync("hello").toString()) },
        });`,
    );
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
    await expect(build("service.ts")).rejects.toThrow("/usr/bin/hello");
    const script = await build("service.ts", ["hello"]);
    expect(script.index.files.map(({ path }) => path)).toContain(SYSTEM_LOCK_NAME);
    await world.deploy("script", script, { settings: { place: WorkerPlace.REMOTE } });
    const agent = startAgent(world, {
      token: await workerToken(world, ["script"]),
      deployment: "script",
      flags: ["--sandbox", "kernel"],
      env: process.env as Record<string, string>,
    });
    await hasJoined(agent);
    await vi.waitFor(
      async () => {
        const { status } = await world.client.deployments.getDeployment({ deployment: "script" });
        expect(status).toBe(DeploymentStatus.READY);
      },
      { timeout: 60_000, interval: 250 },
    );
    expect(await world.call("script", "/greet", { body: {} })).toMatchObject({
      json: "Hello, world!\n",
    });
    await agent.stop();
  }, 180_000);

  it("are named when the platform's sources do not have them", async () => {
    const locking = world.client.deployments.lockSystemPackages({ packages: ["no-such-package"] });
    await expect(locking).rejects.toThrow("Unable to locate package no-such-package");
  });

  it("bring nothing of the machine with them", async () => {
    expect(await world.call("media", "/outside", { body: {} })).toMatchObject({
      json: [false, false, false],
    });
  });
});
