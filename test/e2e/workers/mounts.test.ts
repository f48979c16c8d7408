/** A mounted server in Python at an agent: behind tokens, through roll-outs, and when it is killed. */
import { once } from "node:events";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { buildArtifact } from "../../../src/artifacts/build.ts";
import type { BuiltArtifact } from "../../../src/artifacts/build-options.ts";
import { DeploymentStatus, WorkerPlace } from "../../../src/client/index.ts";
import { leftOut } from "../../needed.ts";
import { skipped as noSandbox } from "../../pool/sandbox/available.ts";
import type { Program } from "../cli/program.ts";
import { pythonMissing } from "../clients/python-environment.ts";
import { type CallOptions, until, World } from "../hosting/world.ts";
import { buildOptions, type Tools, tools } from "../python/uv.ts";
import { bearer } from "../start/platform.ts";
import { startAgent, workerToken } from "./agent-program.ts";

const skipped = noSandbox || leftOut(pythonMissing);
const MEBIBYTE = 1024 ** 2;

const SERVICE = `
import asyncio, json, os
from tessera import api, mount, service

JSON = [(b"content-type", b"application/json")]
left = []
reading = asyncio.Event()

async def answer(send, said):
    await send({"type": "http.response.start", "status": 200, "headers": JSON})
    await send({"type": "http.response.body", "body": json.dumps(said).encode()})

async def app(scope, receive, send):
    path = scope["path"]
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": message["text"]})
        return
    if scope["type"] != "http":
        raise RuntimeError("no lifespan")
    if path == "/upload":
        count = 0
        while True:
            await reading.wait()
            message = await receive()
            count += len(message.get("body", b""))
            if not message.get("more_body"):
                return await answer(send, {"count": count})
    if path == "/read":
        reading.set()
    if path == "/bytes":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(64):
            await send({"type": "http.response.body", "body": b"x" * 1024 * 1024, "more_body": True})
        return await send({"type": "http.response.body", "body": b""})
    if path == "/endless":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        left.append(scope["query_string"].decode())
        return
    if path == "/openapi.json":
        return await answer(send, {"openapi": "3.1.0", "paths": {"/slow": {"get": {}}}})
    if path == "/hang":
        await asyncio.sleep(30)
    if path == "/slow":
        await asyncio.sleep(0.2)
    headers = {name.decode(): value.decode() for name, value in scope["headers"]}
    said = {"revision": 1, "pid": os.getpid(), "parent": os.getppid(), "headers": headers, "left": left}
    await answer(send, said)

@service
class Shop:
    server = mount("/", app, concurrency=150, queue=True)

    @api
    def die(self) -> None:
        os._exit(9)
`;

describe.skipIf(skipped)(`a mounted server in Python at an agent${skipped}`, () => {
  let found: Tools;
  let folder: string;
  let world: World;
  let agent: Program;
  let workers: string;

  const build = (source: string): Promise<BuiltArtifact> => {
    const home = mkdtempSync(join(folder, "service-"));
    writeFileSync(join(home, "service.py"), source);
    writeFileSync(join(home, "requirements.txt"), "uvicorn\nwebsockets\n");
    return buildArtifact(join(home, "service.py"), { include: [], python: buildOptions(found) });
  };

  const joining = (): Program =>
    startAgent(world, {
      ...{ token: workers, deployment: "shop", env: process.env as Record<string, string> },
      flags: [
        ...["--sandbox", "kernel", "--uv", found.uv],
        ...["--python", `${found.interpreter.version}=${found.interpreter.path}`],
      ],
      // It serves all tests of the file, when it has made its environment.
      limitMs: 600_000,
    });

  /** The agent makes the environment of the service before. */
  const ready = () =>
    vi.waitFor(
      async () => {
        const { status } = await world.client.deployments.getDeployment({ deployment: "shop" });
        expect(status).toBe(DeploymentStatus.READY);
      },
      { timeout: 240_000, interval: 100 },
    );

  beforeAll(async () => {
    found = await tools();
    folder = realpathSync(mkdtempSync(join(tmpdir(), "tessera-joined-mounts-")));
    world = await World.start({
      env: process.env as Record<string, string>,
      config: {
        python: {
          interpreters: [`${found.interpreter.version}=${found.interpreter.path}`],
          needsSandbox: true,
          uv: found.uv,
          maxBytesPerOrganization: 512 * MEBIBYTE,
        },
      },
    });
    await world.deploy("shop", await build(SERVICE), {
      authorization: true,
      settings: { place: WorkerPlace.REMOTE },
    });
    workers = await workerToken(world, ["shop"]);
    agent = joining();
    await ready();
  }, 300_000);
  afterAll(async () => {
    await agent?.[Symbol.asyncDispose]();
    await world?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const token = () =>
    world.platform.createToken(world.cookie, {
      access: ["protected_endpoint"],
      all_deployments: true,
    });

  const call = (path: string, options: CallOptions) => world.call("shop", path, options);

  function sent(path: string, value: string, more: object = {}): ClientRequest {
    const { port } = new URL(world.platform.url);
    const { headers = {}, ...options } = more as { headers?: object };
    return request({
      ...{ port, host: "127.0.0.1", path, agent: false, ...options },
      headers: { host: `shop.acme.apps.localhost:${port}`, ...bearer(value), ...headers },
    });
  }

  /** A WebSocket of the deployment, and what its caller hears of its end. */
  async function socket(value: string) {
    const asked = sent("/live", value, {
      headers: {
        ...{ connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" },
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      },
    }).end();
    const [res, opened] = (await once(asked, "upgrade")) as [IncomingMessage, Socket];
    expect(res.statusCode).toBe(101);
    const bytes: Buffer[] = [];
    opened.on("data", (chunk: Buffer) => bytes.push(chunk));
    opened.on("error", () => {});
    const closed = new Promise<void>((resolve) => opened.once("close", resolve));
    return { opened, closed, bytes: () => Buffer.concat(bytes) };
  }

  it("runs there, and answers whoever has a token", async () => {
    const { value } = await token();
    expect((await call("/x", { method: "GET" })).status).toBe(401);
    const { json } = await call("/x", { method: "GET", token: value });
    expect(json.headers["tessera-caller"]).toMatch(/^token="[^"]+", organization="acme"$/);
    expect(json.headers).not.toHaveProperty("authorization");
    const { endpoints } = await world.client.deployments.getDeployment({ deployment: "shop" });
    expect(endpoints.map(({ name }) => name)).toEqual(["die", "/"]);
    const docs = await call("/docs.json", { method: "GET", token: value });
    expect(docs.json.paths["/slow"].get.tags).toEqual(["the server at /"]);
  });

  it("answers piece by piece, and hears that its caller has left", async () => {
    const { value } = await token();
    const asked = sent("/endless?me", value).end();
    const [res] = (await once(asked, "response")) as [IncomingMessage];
    expect(String((await once(res, "data"))[0])).toBe("first");
    asked.destroy();
    await expect
      .poll(async () => (await call("/x", { method: "GET", token: value })).json.left)
      .toEqual(["me"]);
  });

  it("holds up nobody but the caller of what it does not read, and loses nothing", async () => {
    const { value } = await token();
    const asked = sent("/upload", value, { method: "POST" });
    const block = Buffer.alloc(MEBIBYTE);
    let given = 0;
    while (given < 64 && asked.write(block)) {
      given += 1;
    }
    const pushed = (async () => {
      for (given += 1; given < 64; given++) {
        if (!asked.write(block)) {
          await once(asked, "drain");
        }
      }
      asked.end();
    })();
    for (let number = 0; number < 20; number++) {
      expect((await call("/x", { method: "GET", token: value })).status).toBe(200);
    }
    expect(asked.socket?.bytesWritten).toBeLessThan(16 * MEBIBYTE);
    await call("/read", { method: "GET", token: value });
    await pushed;
    const [res] = (await once(asked, "response")) as [IncomingMessage];
    expect(JSON.parse(String((await once(res, "data"))[0]))).toEqual({ count: 64 * MEBIBYTE });
  });

  it("holds up nobody but the caller who does not read", async () => {
    const { value } = await token();
    const slow = await Promise.all(
      Array.from({ length: 80 }, async () => {
        const asked = sent("/bytes", value).end();
        const [res] = (await once(asked, "response")) as [IncomingMessage];
        expect(res.statusCode).toBe(200);
        return { asked, res: res.pause() };
      }),
    );
    for (let number = 0; number < 20; number++) {
      expect((await call("/x", { method: "GET", token: value })).status).toBe(200);
    }
    for (const { asked } of slow.slice(1)) {
      asked.destroy();
    }
    let bytes = 0;
    for await (const chunk of slow[0]?.res ?? []) {
      bytes += chunk.length;
    }
    expect(bytes).toBe(64 * MEBIBYTE);
  });

  it("answers a request that was queued", async () => {
    const { value } = await token();
    const submitted = await call("/slow/submit", { method: "POST", token: value });
    const { task_id: id } = submitted.json;
    const answer = await call(`/slow/get?task_id=${id}&wait=60`, { method: "GET", token: value });
    expect(answer.status).toBe(200);
    expect(answer.json.headers).toMatchObject({ "tessera-task-id": id, "tessera-attempt": "1" });
  });

  it("has WebSockets, which end within a second of the token that opened them", async () => {
    const made = await token();
    const open = await Promise.all(Array.from({ length: 20 }, () => socket(made.value)));
    const kept = await socket((await token()).value);
    // "hey", masked with zeros, and not masked.
    kept.opened.write(Buffer.from([0x81, 0x83, 0, 0, 0, 0, 0x68, 0x65, 0x79]));
    await expect.poll(() => kept.bytes()).toEqual(Buffer.from([0x81, 0x03, 0x68, 0x65, 0x79]));
    const startMs = performance.now();
    await world.client.tokens.deleteToken({ tokenId: made.id });
    await Promise.all(open.map(({ closed }) => closed));
    expect(performance.now() - startMs).toBeLessThan(1_000);
    expect(kept.opened.destroyed).toBe(false);
    kept.opened.destroy();
  });

  it("answers each request of a roll-out beside an answer that lasts, and closes WebSockets with 1012", async () => {
    const { value } = await token();
    const open = await socket(value);
    const lasting = sent("/endless?lasting", value).end();
    const [begun] = (await once(lasting, "response")) as [IncomingMessage];
    await once(begun, "data");
    const kept = new Agent({ keepAlive: true });
    const ended = new AbortController();
    const counts: Record<string, number> = {};
    const callers = Array.from({ length: 4 }, async (_, number) => {
      while (!ended.signal.aborted) {
        const options = { token: value, agent: kept };
        const { status, json, text } = await call("/y", {
          ...options,
          ...(number % 2 === 0 ? { method: "GET" } : { body: {} }),
        });
        const key = status === 200 ? `${status} ${json?.revision}` : `${status} ${text}`;
        counts[key] = (counts[key] ?? 0) + 1;
      }
    });
    await world.deploy("shop", await build(SERVICE.replace('"revision": 1', '"revision": 2')));
    await open.closed;
    await expect.poll(() => counts["200 2"] ?? 0).toBeGreaterThan(100);
    ended.abort();
    await Promise.all(callers);
    kept.destroy();
    expect(Object.keys(counts).sort()).toEqual(["200 1", "200 2"]);
    expect([begun.complete, begun.destroyed]).toEqual([false, false]);
    lasting.destroy();
    // A close frame (RFC 6455, section 5.5.1) with the code 1012.
    expect(open.bytes().includes(Buffer.from([0x88, 0x02, 0x03, 0xf4]))).toBe(true);
  }, 120_000);

  it("that dies amid requests leaves each of them with one answer, and serves again", async () => {
    const { value } = await token();
    const options = { method: "GET", token: value } as const;
    const asked = Array.from({ length: 200 }, () => call("/slow", options));
    await call("/slow", options);
    expect((await call("/die", { token: value, body: {} })).status).toBe(500);
    const statuses = (await Promise.all(asked)).map(({ status }) => status);
    expect(statuses.every((status) => status === 200 || status === 503)).toBe(true);
    await expect.poll(async () => (await call("/x", options)).status).toBe(200);
  });

  it("that dies amid queued requests answers each of them in the end", async () => {
    const { value } = await token();
    const kept = new Agent({ keepAlive: true, maxSockets: 10 });
    const asked = { token: value, agent: kept };
    const ids = await Promise.all(
      Array.from({ length: 60 }, async (_, n) => {
        const { json } = await call("/slow/submit", { method: "POST", ...asked });
        if (n === 30) {
          await call("/die", { body: {}, ...asked });
        }
        return json.task_id;
      }),
    );
    const answers = await Promise.all(
      ids.map(async (id) => {
        const found = await call(`/slow/get?task_id=${id}&wait=60`, { method: "GET", ...asked });
        return [found.status, found.json.headers?.["tessera-task-id"]];
      }),
    );
    kept.destroy();
    expect(answers).toEqual(ids.map((id) => [200, id]));
  }, 180_000);

  it("whose agent is killed amid requests answers each, and its WebSockets end", async () => {
    const { value } = await token();
    const options = { method: "GET", token: value } as const;
    const open = await socket(value);
    const asked = Array.from({ length: 100 }, () => call("/hang", options));
    await call("/x", options);
    agent.send("SIGKILL");
    await open.closed;
    const statuses = (await Promise.all(asked)).map(({ status }) => status);
    expect(statuses.every((status) => status === 200 || status === 503)).toBe(true);
    expect(statuses).toContain(503);
    await agent[Symbol.asyncDispose]();
    agent = joining();
    await until(
      () => call("/x", options),
      ({ status }) => status === 200,
    );
  });

  it("finishes what it has begun when its agent is asked to end", async () => {
    const { value } = await token();
    const open = await socket(value);
    const asked = Array.from({ length: 20 }, () => call("/slow", { method: "GET", token: value }));
    await call("/x", { method: "GET", token: value });
    agent.send("SIGTERM");
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(Array(20).fill(200));
    await open.closed;
    expect(open.bytes().includes(Buffer.from([0x88, 0x02, 0x03, 0xf4]))).toBe(true);
    expect((await agent.ended).code).toBe(0);
  });
});
