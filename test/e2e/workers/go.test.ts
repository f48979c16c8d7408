/** The worker in Go of examples/worker-go, from its generated stubs, as its README starts it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { generateStubs } from "../../../scripts/generate-clients.ts";
import { createRemoteIndex, writeIndex } from "../../../src/artifacts/index-file.ts";
import { leftOut } from "../../needed.ts";
import { goMissing, runGo } from "../clients/go-environment.ts";
import { ROOT } from "../clients/python-environment.ts";
import { until, World } from "../hosting/world.ts";

/** Cold caches mean that Go compiles gRPC. */
const BUILD_MS = 400_000;

const EXAMPLE = join(ROOT, "examples/worker-go");
const withoutGo = leftOut(goMissing);

describe.skipIf(withoutGo)(`a worker in Go${withoutGo}`, () => {
  let folder: string;
  let world: World;
  let child: ChildProcess;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "tessera-worker-go-"));
    const source = join(folder, "source");
    for (const name of ["go.mod", "go.sum", "main.go", "manifest.json"]) {
      cpSync(join(EXAMPLE, name), join(source, name));
    }
    await generateStubs("go", join(folder, "go"));
    cpSync(join(folder, "go/gen/tesserav1"), join(source, "tesserav1"), { recursive: true });
    const program = join(folder, "program");
    await runGo("go", ["build", "-mod=readonly", "-o", program, "."], { cwd: source });
    world = await World.start();
    const manifest = JSON.parse(readFileSync(join(EXAMPLE, "manifest.json"), "utf8"));
    const index = Buffer.from(writeIndex(createRemoteIndex(manifest)));
    await world.client.deployments.createRevision({ deployment: "primes", index });
    const access = { access: ["worker"], deployments: ["primes"] };
    const { value } = await world.platform.createToken(world.cookie, access);
    const address = new URL(world.platform.url).host;
    await world.until("primes", ({ statusReason }) => statusReason.includes("waits for a worker"));
    child = spawn(program, {
      env: { TESSERA_ADDRESS: address, TESSERA_TOKEN: value, no_proxy: "127.0.0.1" },
      stdio: "inherit",
    });
    await until(
      () => world.call("primes", "/is_prime", { body: { number: 97 } }),
      ({ status }) => status === 200,
    );
  }, BUILD_MS);

  afterAll(async () => {
    child?.kill("SIGKILL");
    await world?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  it("is short", () => {
    expect(readFileSync(join(EXAMPLE, "main.go"), "utf8").split("\n").length).toBeLessThan(200);
  });

  it("answers calls of apis and runs tasks", async () => {
    const isPrime = async (number: number) =>
      (await world.call("primes", "/is_prime", { body: { number } })).json;
    expect(await Promise.all([97, 98, 99, 101].map(isPrime))).toEqual([true, false, false, true]);
    const { json } = await world.call("primes", "/count/submit", { body: { number: 1_000 } });
    const result = await world.call("primes", `/count/get?task_id=${json.task_id}&wait=20`);
    expect(result.json).toBe(168);
  });

  it("ends its calls when they are cancelled", async () => {
    const { json } = await world.call("primes", "/count/submit", {
      body: { number: 1_000_000_000 },
    });
    const query = `task_id=${json.task_id}`;
    await until(
      () => world.call("primes", `/count/status?${query}`),
      ({ json: { status } }) => status === "running",
    );
    await world.call("primes", `/count/cancel?${query}&abort=true`, { method: "POST" });
    const ended = await world.call("primes", `/count/status?${query}`);
    expect(ended.json.status).toBe("cancelled");
    expect(child.exitCode).toBeNull();
  });

  it("ends by SIGTERM", async () => {
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    await exited;
    expect(child.signalCode).toBeNull();
  });
});
