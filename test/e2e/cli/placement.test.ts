import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TestWorker } from "../workers/test-worker.ts";
import { json, type Scene, scene } from "./platform-person.ts";

const MANIFEST = fileURLToPath(
  new URL("../../../examples/worker-go/manifest.json", import.meta.url),
);

describe("where workers run, on the command line", () => {
  let at: Scene;

  beforeAll(async () => {
    at = await scene();
  });
  afterAll(() => at[Symbol.asyncDispose]());

  it("deploys a manifest, says what it waits for, and lists the worker that has joined", async () => {
    const flags = ["--name", "primes", "--require", "zone=b", "--place", "remote"];
    const deployed = await at.ada.run(["deploy", MANIFEST, ...flags]);
    expect(deployed).toMatchObject({ code: 0 });
    expect(deployed.stderr).toMatch(
      /warning: it takes no calls yet: waits for a worker with the label zone=b that brings/,
    );
    const shown = await at.ada.run(["deployment", "get", "primes"]);
    expect(shown.stdout).toMatch(/^place +remote, with zone=b$/m);
    const none = await at.ada.run(["worker", "list", "--deployment", "primes", "-o", "json"]);
    expect(json(none)).toEqual({ workers: [], omitted: 0 });

    const { value } = await at.platform.createToken(at.adaCookie, {
      access: ["worker"],
      deployments: ["primes"],
    });
    await using worker = new TestWorker(at.platform.url, value);
    const machine = {
      deployment: "primes",
      labels: { zone: "b" },
      runtime: { hostname: "gpu-7", platform: "linux-x64" },
    };
    const bring = (manifest: string) =>
      worker.register({ ...machine, code: { case: "manifestJson", value: manifest } });
    await expect(bring("{}")).rejects.toThrow(/tessera deploy manifest.json --name primes/);
    await bring(readFileSync(MANIFEST, "utf8"));
    await worker.open({ is_prime: 1, count: 1 });
    const listed = await at.ada.run(["worker", "list"]);
    const other = await at.ada.run(["worker", "list", "--deployment", "prime"]);
    expect(other).toMatchObject({ code: 4, stdout: "" });
    expect(other.stderr).toContain('"prime" does not exist\ndid you mean primes?');
    expect(listed.stdout).toMatch(/^\S+ +primes +1 +ready +0 +gpu-7 \(linux-x64\) +zone=b +\S/m);
  });

  it("changes what is required, and takes it back", async () => {
    const update = (...flags: string[]) =>
      at.ada.run(["deployment", "update", "primes", ...flags, "-o", "json"]);
    const settings = async (...flags: string[]) => json(await update(...flags)).settings;
    expect(await settings("--require", "gpu=*", "--place", "any")).toMatchObject({
      requires: { gpu: "*" },
      place: "any",
    });
    expect(await settings("--clear-require")).toMatchObject({ requires: {} });
    for (const [flags, message] of [
      [["--require", "gpu"], /--require "gpu" must have a value/],
      [["--place", "there"], /--place "there" must be local, remote or any/],
      [["--clear-require", "--require", "a=b"], /contradict each other/],
    ] as const) {
      const { code, stderr } = await update(...flags);
      expect(code).toBe(2);
      expect(stderr).toMatch(message);
    }
  });
});
