/**
 * A mounted server of a deployment: in the sandbox, behind tokens, through a rolling update, and
 * when its worker is killed.
 */

import { once } from "node:events";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildArtifact } from "../../../src/artifacts/build.ts";
import type { BuiltArtifact } from "../../../src/artifacts/build-options.ts";
import { leftOut } from "../../needed.ts";
import { skipped as noSandbox } from "../../pool/sandbox/available.ts";
import { pythonMissing } from "../clients/python-environment.ts";
import { World } from "../hosting/world.ts";
import { administration, bearer } from "../start/platform.ts";
import { buildOptions, type Tools, tools } from "./uv.ts";

const skipped = noSandbox || leftOut(pythonMissing);
const MEBIBYTE = 1024 ** 2;

const SERVICE = `
import json, os
from tessera import api, mount, service, socket

JSON = [(b"content-type", b"application/json")]

async def app(scope, receive, send):
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": message["text"]})
        return
    if scope["type"] != "http":
        raise RuntimeError("no lifespan")
    headers = {name.decode(): value.decode() for name, value in scope["headers"]}
    said = {"revision": 1, "pid": os.getpid(), "headers": headers, "path": scope["path"]}
    await send({"type": "http.response.start", "status": 200, "headers": JSON})
    await send({"type": "http.response.body", "body": json.dumps(said).encode()})

@service
class Shop:
    server = mount("/", app, concurrency=50)

    @socket
    async def talk(self, ctx) -> None:
        async for message in ctx.socket:
            await ctx.socket.send(ctx.request.headers["tessera-caller"])

    @api
    def die(self) -> None:
        os._exit(9)
`;

const COUNTING = `
from prometheus_client import Counter
from tessera import api, service

words = Counter("words", "Words that were read", ["lang"])

@service
class Reader:
    @api
    def read(self, text: str) -> int:
        words.labels("de").inc(len(text.split()))
        return len(text.split())
`;

describe.skipIf(skipped)(`a mounted server of a deployment${skipped}`, () => {
  let found: Tools;
  let folder: string;
  let world: World;

  const build = (source: string, packages = "uvicorn\nwebsockets\n"): Promise<BuiltArtifact> => {
    const home = mkdtempSync(join(folder, "service-"));
    writeFileSync(join(home, "service.py"), source);
    writeFileSync(join(home, "requirements.txt"), packages);
    return buildArtifact(join(home, "service.py"), {
      include: [],
      python: buildOptions(found),
    });
  };

  beforeAll(async () => {
    found = await tools();
    folder = realpathSync(mkdtempSync(join(tmpdir(), "tessera-mounts-")));
    const { version, path } = found.interpreter;
    const python = {
      interpreters: [`${version}=${path}`],
      needsSandbox: true,
      uv: found.uv,
      maxBytesPerOrganization: 512 * MEBIBYTE,
    };
    world = await World.start({ env: process.env as Record<string, string>, config: { python } });
    await world.deployed("shop", await build(SERVICE), {
      authorization: true,
      settings: { minWorkers: 2, maxWorkers: 2 },
    });
  }, 300_000);
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const token = () =>
    world.platform.createToken(world.cookie, {
      access: ["protected_endpoint"],
      all_deployments: true,
    });

  /** A WebSocket of the deployment, and what its caller hears of its end. */
  async function socket(value: string, path = "/live") {
    const { port } = new URL(world.platform.url);
    const sent = request({
      ...{ port, host: "127.0.0.1", path, agent: false },
      headers: {
        ...{
          host: `shop.acme.apps.localhost:${port}`,
          connection: "Upgrade",
          upgrade: "websocket",
        },
        ...{ "sec-websocket-version": "13", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" },
        ...bearer(value),
      },
    }).end();
    const [res, opened] = await once(sent, "upgrade");
    expect(res.statusCode).toBe(101);
    const bytes: Buffer[] = [];
    opened.on("data", (chunk: Buffer) => bytes.push(chunk));
    opened.on("error", () => {});
    const closed = new Promise<void>((resolve) => opened.once("close", resolve));
    return { opened, closed, bytes: () => Buffer.concat(bytes) };
  }

  it("asks for a token, tells the server whose it was, and keeps it", async () => {
    const made = await token();
    expect((await world.call("shop", "/x", { method: "GET" })).status).toBe(401);
    const asked = await world.call("shop", "/x", { method: "GET", token: made.value });
    expect(asked.json).toMatchObject({ path: "/x" });
    expect(asked.json.headers["tessera-caller"]).toMatch(/^token="[^"]+", organization="acme"$/);
    expect(JSON.stringify(asked.json)).not.toContain(made.value);
    expect(asked.json.headers).not.toHaveProperty("authorization");
  });

  it("loses its WebSockets within a second of the token that opened them", async () => {
    const made = await token();
    const open = await Promise.all(Array.from({ length: 20 }, () => socket(made.value)));
    const kept = await socket((await token()).value);
    const startMs = performance.now();
    await world.client.tokens.deleteToken({ tokenId: made.id });
    await Promise.all(open.map(({ closed }) => closed));
    expect(performance.now() - startMs).toBeLessThan(1_000);
    expect(kept.opened.destroyed).toBe(false);
    kept.opened.destroy();
  });

  it("has functions that speak through WebSockets, for whoever may call it", async () => {
    const asked = await world.call("shop", "/talk", { method: "GET" });
    expect(asked.status).toBe(401);
    const made = await token();
    const plain = await world.call("shop", "/talk", { method: "GET", token: made.value });
    expect(plain.status).toBe(426);
    const { opened, closed, bytes } = await socket(made.value, "/talk");
    // A masked text without content.
    opened.write(Buffer.from([0x81, 0x80, 0, 0, 0, 0]));
    await expect.poll(() => String(bytes())).toMatch(/token="[^"]+", organization="acme"$/);
    const startMs = performance.now();
    await world.client.tokens.deleteToken({ tokenId: made.id });
    await closed;
    expect(performance.now() - startMs).toBeLessThan(1_000);
  });

  it("answers each request of a rolling update, and closes WebSockets with 1012", async () => {
    const { value } = await token();
    const open = await socket(value);
    using agent = Object.assign(new Agent({ keepAlive: true }), {
      [Symbol.dispose](this: Agent) {
        this.destroy();
      },
    });
    const ended = new AbortController();
    const counts: Record<string, number> = {};
    const callers = Array.from({ length: 4 }, async () => {
      while (!ended.signal.aborted) {
        const { status, json } = await world.call("shop", "/y", {
          method: "GET",
          token: value,
          agent,
        });
        const key = `${status} ${json?.revision}`;
        counts[key] = (counts[key] ?? 0) + 1;
      }
    });
    await world.deployed("shop", await build(SERVICE.replace('"revision": 1', '"revision": 2')));
    await open.closed;
    await expect.poll(() => counts["200 2"] ?? 0).toBeGreaterThan(100);
    ended.abort();
    await Promise.all(callers);
    expect(Object.keys(counts).sort()).toEqual(["200 1", "200 2"]);
    // A close frame (RFC 6455, section 5.5.1) with the code 1012.
    expect(open.bytes().includes(Buffer.from([0x88, 0x02, 0x03, 0xf4]))).toBe(true);
  }, 120_000);

  it("that dies amid requests leaves each of them with one answer", async () => {
    const { value } = await token();
    const options = { method: "GET", token: value } as const;
    const asked = Promise.allSettled(
      Array.from({ length: 200 }, () => world.call("shop", "/z", options)),
    );
    const dead = await world.call("shop", "/die", { token: value, body: {} });
    expect(dead.status).toBe(500);
    // An answer that had begun is cut.
    const ends = (await asked).map((one) =>
      one.status === "fulfilled" ? one.value.status : String(one.reason),
    );
    const expected: readonly (number | string)[] = [200, 503, "Error: aborted"];
    expect(ends.filter((end) => !expected.includes(end))).toEqual([]);
    await expect.poll(async () => (await world.call("shop", "/z", options)).status).toBe(200);
  });

  it("stands beside what the libraries of a service count, for a monitoring token", async () => {
    const packages = "prometheus_client\n";
    await world.deployed("reader", await build(COUNTING, packages), {
      settings: { minWorkers: 2, maxWorkers: 2 },
    });
    for (let number = 0; number < 6; number += 1) {
      const { status, text } = await world.call("reader", "/read", { body: { text: "a b" } });
      expect([status, text]).toEqual([200, "2"]);
    }
    await using operator = await administration(world.folder);
    await operator.setMonitoring("acme", true);
    const { value } = await world.platform.createToken(world.cookie, {
      ...{ kind: "organization", access: ["monitoring"], organization: "acme", name: "scraper" },
    });
    const match = encodeURIComponent('{__name__="words_total"}');
    const url = `${world.platform.url}/federate?match[]=${match}`;
    await expect
      .poll(async () => await (await fetch(url, { headers: bearer(value) })).text())
      .toMatch(/^words_total\{deployment="reader",lang="de",.*\} 12 \d+$/m);
  });
});
