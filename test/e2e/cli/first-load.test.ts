/** `tessera serve` while its service loads: probes hear the truth, and callers are held. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  Health,
  HealthCheckResponse_ServingStatus,
} from "../../../gen/grpc/health/v1/health_pb.js";
import { freePort } from "../../free-port.ts";
import { Gate } from "./gate.ts";
import { Program } from "./program.ts";

const TOKEN = "a-token-of-this-test";
const folder = mkdtempSync(join(tmpdir(), "tessera-loading-"));
const path = join(folder, "service.ts");
let gate: Gate;
let program: Program;
let url: string;

beforeAll(async () => {
  gate = await Gate.start();
  const lines = [
    'import { api, service } from "tessera-platform";',
    `const loaded = await (await fetch(${JSON.stringify(gate.url("load"))})).text();`,
    'if (loaded === "broken") throw new Error("the weights are corrupt");',
    "const endpoints = { said: api({}, () => loaded) };",
    'export default service({ name: "late", endpoints });',
  ];
  writeFileSync(path, lines.join("\n"));
});
afterAll(async () => {
  await gate[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});
afterEach(() => program[Symbol.asyncDispose]());

/** Serves it up to where it waits to be let through. */
async function loading(...flags: string[]) {
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  const args = ["serve", path, "--port", String(port), "--workers", "1", ...flags];
  program = new Program(args, { env: { TESSERA_LOG_LEVEL: "error" } });
  return gate.visit("load");
}

const call = (token?: string): Promise<Response> =>
  fetch(`${url}/said`, {
    method: "POST",
    ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
  });

describe("tessera serve, while its service loads", { timeout: 40_000 }, () => {
  it("is alive and not ready, and answers who came meanwhile when it has loaded", async () => {
    const visit = await loading();
    for (const probe of ["/livez", "/healthz"]) {
      expect((await fetch(url + probe)).status).toBe(200);
    }
    const unready = await fetch(`${url}/readyz`);
    expect([unready.status, unready.headers.get("retry-after")]).toEqual([503, "1"]);
    const { message, details } = (await unready.json()) as {
      message: string;
      details: { debug: { reason?: string } }[];
    };
    expect([message, details[0]?.debug.reason]).toEqual([
      "not ready: the service is loading",
      "NO_WORKER",
    ]);
    const health = createClient(Health, createGrpcTransport({ baseUrl: url }));
    expect((await health.check({})).status).toBe(HealthCheckResponse_ServingStatus.NOT_SERVING);

    const held = [call(), fetch(`${url}/schema.json`), fetch(`${url}/docs.json`)];
    // Answered after those have come: they are held, and it is not.
    expect((await fetch(`${url}/livez`)).status).toBe(200);
    visit.open("loaded");
    const [said, ...documents] = await Promise.all(held);
    expect([said?.status, await said?.text()]).toEqual([200, '"loaded"']);
    expect(documents.map(({ status }) => status)).toEqual([200, 200]);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect((await health.check({})).status).toBe(HealthCheckResponse_ServingStatus.SERVING);
  });

  it("refuses callers without its token at once, and holds the others", async () => {
    const visit = await loading("--token", TOKEN);
    expect((await call()).status).toBe(401);
    const held = call(TOKEN);
    visit.open("loaded");
    expect((await held).status).toBe(200);
  });

  it("gives the service up after --ready-timeout, and says what gives it longer", async () => {
    const { gone } = await loading("--ready-timeout", "2s");
    await gone;
    const { code, stderr } = await program.ended;
    expect(code).toBe(1);
    expect(stderr).toContain("not ready after 2 s");
    expect(stderr).toContain("--ready-timeout gives it longer");
  });

  it("answers those that it held when the service cannot be loaded, and ends", async () => {
    const visit = await loading();
    const held = call();
    expect((await fetch(`${url}/livez`)).status).toBe(200);
    visit.open("broken");
    const refused = await held;
    expect(refused.status).toBe(503);
    expect(await refused.text()).toContain("SHUTTING_DOWN");
    const { code, stderr } = await program.ended;
    expect(code).toBe(1);
    expect(stderr).toContain("the weights are corrupt");
  });
});
