/** Mounted servers of services in TypeScript, in each sandbox, on the node and on a joined machine. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EndpointKind } from "../../../gen/tessera/v1/endpoint_pb.js";
import { buildArtifact } from "../../../src/artifacts/build.ts";
import { DeploymentStatus, WorkerPlace } from "../../../src/client/index.ts";
import { skipped as noSandbox } from "../../pool/sandbox/available.ts";
import type { Program } from "../cli/program.ts";
import { administration, bearer } from "../start/platform.ts";
import { CLOSE, frames, open, text } from "../websockets/client.ts";
import { startAgent, workerToken } from "../workers/agent-program.ts";
import { type CallOptions, World } from "./world.ts";

const SERVICE = fileURLToPath(new URL("../../fixtures/services/serve/mounts.ts", import.meta.url));

describe.each([
  ["permission", "the node"],
  ...(noSandbox ? [] : [["kernel", "the node"] as const]),
  ["permission", "a machine that has joined"],
] as const)(
  "a server mounted by a service in TypeScript, in the sandbox %s on %s",
  (sandbox, machine) => {
    let world: World;
    let agent: Program | undefined;
    beforeAll(async () => {
      world = await World.start({ env: { TESSERA_SANDBOX: sandbox } });
      const isJoined = machine !== "the node";
      await world.deploy("mounted", await buildArtifact(SERVICE), {
        settings: isJoined ? { place: WorkerPlace.REMOTE } : { minWorkers: 1, maxWorkers: 1 },
      });
      if (isJoined) {
        const token = await workerToken(world, ["mounted"]);
        agent = startAgent(world, { token, deployment: "mounted" });
      }
      await world.until("mounted", ({ status }) => status === DeploymentStatus.READY);
    }, 120_000);
    afterAll(async () => {
      await agent?.[Symbol.asyncDispose]();
      await world?.[Symbol.asyncDispose]();
    });

    const call = (path: string, options?: CallOptions) => world.call("mounted", path, options);

    it("is a handler of requests, an application with one, or a server of Node", async () => {
      const { port } = new URL(world.platform.url);
      const host = `mounted.acme.apps.localhost:${port}`;
      expect(await call("/deep/x?y=1")).toMatchObject({
        status: 404,
        text: `GET http://${host}/deep/x?y=1`,
      });
      expect((await call("/app/x")).text).toBe("app /app/x");
      expect(await call("/plain/x?y=1", { method: "DELETE" })).toMatchObject({
        status: 200,
        text: "DELETE /plain/x?y=1",
        headers: { "x-plain": "yes" },
      });
      expect((await call("/double", { body: { number: 4 } })).text).toBe("8");
      const { endpoints } = await world.client.deployments.getDeployment({ deployment: "mounted" });
      expect(
        endpoints.filter(({ kind }) => kind === EndpointKind.SERVER).map(({ name }) => name),
      ).toEqual(["/", "/app", "/plain", "/without", "/talk"]);
    });

    it("is chosen by the path that dots lead to, which it gets as it came", async () => {
      expect((await call("/app/../plain/x", { method: "DELETE" })).text).toBe(
        "DELETE /app/../plain/x",
      );
      expect((await call("/plain/%2e%2e/app/x")).text).toBe("app /app/x");
      expect((await call("/plain/../headers")).json).toHaveProperty("x-forwarded-for");
    });

    it("gets bodies, says headers, and streams", async () => {
      expect((await call("/body", { body: { text: "x".repeat(100_000) } })).json).toEqual({
        method: "POST",
        bytes: 100_011,
      });
      expect(await call("/cookies")).toMatchObject({
        status: 201,
        headers: { "set-cookie": ["a=1", "b=2"] },
      });
      expect((await call("/stream")).text).toBe(
        Array.from({ length: 100 }, (_, n) => `${n},`).join(""),
      );
      expect((await call("/headers")).json).toMatchObject({ "x-forwarded-proto": "http" });
      expect((await call("/fails")).status).toBe(500);
      expect((await call("/left")).json).toEqual([]);
    });

    it("hears that its caller has left", async () => {
      const { port } = new URL(world.platform.url);
      const headers = { host: `mounted.acme.apps.localhost:${port}` };
      const sent = request({ host: "127.0.0.1", port, path: "/endless?me", headers, agent: false });
      const [res] = await once(sent.end(), "response");
      await once(res, "data");
      sent.destroy();
      await expect.poll(async () => (await call("/left")).json).toEqual(["?me"]);
    });

    it("keeps upgraded connections until its worker stops, and says 1012 then", async () => {
      const { port } = new URL(world.platform.url);
      const sent = request({
        ...{ host: "127.0.0.1", port, path: "/plain/live", agent: false },
        headers: {
          host: `mounted.acme.apps.localhost:${port}`,
          ...{ connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" },
          "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        },
      });
      const [res, socket] = await once(sent.end(), "upgrade");
      expect(res.headers["sec-websocket-accept"]).toBe("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
      socket.write("as it is");
      expect(String((await once(socket, "data"))[0])).toBe("as it is");
      const last = once(socket, "data");
      await world.deployed("mounted", await buildArtifact(SERVICE), {
        settings: { maxWorkers: 2 },
      });
      expect((await last)[0]).toEqual(Buffer.from([0x88, 0x02, 0x03, 0xf4]));
      socket.destroy();
    });

    it("may be a function with a WebSocket, which closes with 1012 when its worker stops", async () => {
      const { port } = new URL(world.platform.url);
      const headers = { host: `mounted.acme.apps.localhost:${port}` };
      const talk = await open(world.platform.url, { path: "/talk", headers });
      expect(talk.status).toBe(101);
      const heard = frames(talk.stream);
      talk.stream.write(text("hello"));
      const answer = (await heard.next()).value;
      expect(String(answer?.payload)).toBe("/talk heard hello");
      await world.deployed("mounted", await buildArtifact(SERVICE), {
        settings: { maxWorkers: 2 },
      });
      expect((await heard.next()).value).toMatchObject({
        opcode: CLOSE,
        payload: Buffer.from([0x03, 0xf4]),
      });
      talk.stream.destroy();
    });

    it("says which of its routes has answered, for metrics alone", async () => {
      for (const said of [
        "/plain/{id}",
        "/elsewhere",
        "not a route",
        `/plain/${"x".repeat(300)}`,
      ]) {
        const { status, headers } = await call("/plain/x", { headers: { "x-route": said } });
        expect([status, headers["tessera-route"]]).toEqual([200, undefined]);
      }
      const { text } = await call("/metrics");
      const counted = text.match(/(?<=^tessera_requests_total\{.*endpoint=")\/plain[^"]*/gm);
      expect(new Set(counted)).toEqual(new Set(["/plain", "/plain/{id}"]));
    });

    it("exposes metrics at a path that it names, which a monitoring token reads", async () => {
      await call("/plain/x");
      await using operator = await administration(world.folder);
      await operator.setMonitoring("acme", true);
      const { value } = await world.platform.createToken(world.cookie, {
        ...{ kind: "organization", access: ["monitoring"], organization: "acme", name: "scraper" },
      });
      const match = encodeURIComponent('{__name__="plain_requests_total"}');
      const url = `${world.platform.url}/federate?match[]=${match}`;
      const read = async () => await (await fetch(url, { headers: bearer(value) })).text();
      await expect
        .poll(read)
        .toMatch(
          /^plain_requests_total\{deployment="mounted",exported_job="x",.*\} [1-9]\d* \d+$/m,
        );
      expect((await call("/metrics")).text).toMatch(/^plain_requests_total\{/m);
    });

    it("fails its own callers only, with answers that are none", async () => {
      const { port } = new URL(world.platform.url);
      const session = connectHttp2(world.platform.url);
      const overHttp2 = async (path: string): Promise<number> => {
        const sent = session.request({
          ":path": path,
          ":authority": `mounted.acme.apps.localhost:${port}`,
        });
        sent.on("error", () => {});
        sent.resume();
        const status = once(sent, "response").then(([headers]) => Number(headers[":status"]));
        return await Promise.race([status, once(sent, "close").then(() => 0)]);
      };
      for (const path of ["099", "600", "101", "garbage"].map((name) => `/plain/${name}`)) {
        expect([path, (await call(path)).status]).toEqual([path, 500]);
        expect([path, await overHttp2(path)]).toEqual([path, 500]);
      }
      expect((await call("/plain/twice")).status).toBe(200);
      expect(await overHttp2("/plain/twice")).toBe(200);
      session.close();
    });

    it("gets its slots back from callers over HTTP/2 that leave, or never send all", async () => {
      const { port } = new URL(world.platform.url);
      const session = connectHttp2(world.platform.url);
      const authority = `mounted.acme.apps.localhost:${port}`;
      const asked = Array.from({ length: 10 }, () => {
        const sent = session.request({ ":path": "/plain/endless", ":authority": authority });
        return once(sent, "data");
      });
      await Promise.all(asked);
      session.destroy();
      await expect.poll(async () => (await call("/plain/x")).status).toBe(200);
      const other = connectHttp2(world.platform.url);
      for (let number = 0; number < 20; number++) {
        const sent = other.request({
          ...{ ":method": "POST", ":path": "/plain/x", ":authority": authority },
          "content-length": "100",
        });
        sent.on("error", () => {});
        sent.write("x");
        expect((await once(sent, "response"))[0][":status"]).toBe(200);
        sent.resume();
      }
      expect((await call("/plain/x")).status).toBe(200);
      other.destroy();
    });

    it("takes no request out of another one, and no caller from a header", async () => {
      const { port } = new URL(world.platform.url);
      const host = `mounted.acme.apps.localhost:${port}`;
      const smuggled =
        "GET /headers?smuggled HTTP/1.1\r\nhost: x\r\ntessera-caller: user=1\r\n\r\n";
      const sent = request({
        ...{ host: "127.0.0.1", port, path: "/headers", agent: false },
        headers: {
          ...{ host, connection: "Upgrade", upgrade: "websocket" },
          "content-length": String(smuggled.length),
        },
      });
      sent.end(smuggled);
      const [res] = await once(sent, "response");
      res.resume();
      const { json } = await call("/headers", { headers: { tessera_caller: "user=1" } });
      expect(json).not.toHaveProperty("tessera-caller");
      expect(json).not.toHaveProperty("tessera_caller");
      expect(json).not.toHaveProperty("content-length");
    });

    it("gets a head of 100 kB if it takes one, and nothing that was for the platform's host", async () => {
      const long = { "x-long": "x".repeat(100_000) };
      expect((await call("/headers", { headers: long })).json).toMatchObject(long);
      // A server that takes less may end the connection while the rest is on its way.
      const refused = await call("/plain/x", { headers: long }).then(
        ({ status }) => status,
        () => 431,
      );
      expect([431, 503]).toContain(refused);
      const { host: own, port } = new URL(world.platform.url);
      const session = connectHttp2(world.platform.url);
      const authority = `mounted.acme.apps.localhost:${port}`;
      const sent = session.request({ ":path": "/plain/x", ":authority": authority, ...long });
      session.on("error", () => {});
      const over2 = await once(sent, "response").then(
        ([headers]) => Number(headers[":status"]),
        () => 431,
      );
      session.destroy();
      expect(over2).toBe(431);
      const upgrade = {
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
      };
      for (const headers of [{}, { ...upgrade, "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" }]) {
        const answer = await call("/plain/live", { host: own, method: "GET", headers });
        expect([answer.status >= 400, answer.headers["x-plain"]]).toEqual([true, undefined]);
      }
      expect((await call("/plain/x")).status).toBe(200);
    });

    it("is left, as by uvicorn and Node alone, by a caller who closes the half that speaks", async () => {
      const { port } = new URL(world.platform.url);
      const head = `HTTP/1.1\r\nhost: mounted.acme.apps.localhost:${port}\r\n`;
      const speaking = (request: string) => {
        const raw = connect({ port: Number(port), host: "127.0.0.1", allowHalfOpen: true });
        raw.on("error", () => {}).write(request);
        return { raw, closed: new Promise((resolve) => raw.once("close", resolve)) };
      };
      const listening = speaking(`GET /endless?half ${head}\r\n`);
      await once(listening.raw, "data");
      listening.raw.end();
      await expect.poll(async () => (await call("/left")).json).toContain("?half");
      await listening.closed;
      // More than it has slots.
      const uploads = Array.from({ length: 150 }, () => {
        const { raw, closed } = speaking(`POST /body ${head}content-length: 100\r\n\r\nx`);
        raw.resume().end();
        return closed;
      });
      await Promise.all(uploads);
      expect((await call("/body", { body: {} })).json).toEqual({ method: "POST", bytes: 2 });
    });

    it("is not opened by the access of a task", async () => {
      expect((await call("/deep/get?task_id=x&access=tsra_x")).text).not.toMatch(/^GET /);
    });

    it("leaves the node as it was where a WebSocket is asked for behind another request", async () => {
      const { port } = new URL(world.platform.url);
      const raw = connect(Number(port), "127.0.0.1");
      raw.on("error", () => {});
      const upgrade = "connection: Upgrade\r\nupgrade: websocket\r\n\r\n";
      raw.write(
        `GET /plain/x HTTP/1.1\r\nhost: mounted.acme.apps.localhost\r\n\r\nGET / HTTP/1.1\r\nhost: x\r\n${upgrade}`,
      );
      await new Promise((resolve) => raw.once("close", resolve));
      expect((await call("/plain/x")).status).toBe(200);
    });

    it("opens no other socket to its service", async () => {
      const folder = mkdtempSync(join(tmpdir(), "tessera-foreign-"));
      const foreign = createServer().listen(join(folder, "socket"));
      try {
        await once(foreign, "listening");
        const path = join(folder, "socket");
        const { text } = await call("/reach", { body: { path } });
        expect(text).toMatch(/not allowed in a deployed service|ENOENT/);
      } finally {
        foreign.close();
        rmSync(folder, { recursive: true });
      }
    });
  },
);
