/** The configurations of docs/production.md in a real Caddy and a real nginx, before a platform. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import type { IncomingHttpHeaders } from "node:http";
import { request } from "node:https";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Health } from "../../../gen/grpc/health/v1/health_pb.js";
import { EndpointService } from "../../../gen/tessera/v1/endpoint_pb.js";
import { freePort } from "../../free-port.ts";
import { leftOut } from "../../needed.ts";
import { artifact, until, World } from "../hosting/world.ts";
import { Folder } from "../start/platform.ts";
import { blocksOf } from "./blocks.ts";

const blockOf = blocksOf("docs/production.md");
const SECRET = "a-long-secret-of-your-own";
const CALLER = "127.0.0.9";

interface Proxy {
  readonly name: string;
  readonly paths: readonly string[];
  /** The configuration around that of the page, with no ports but the given one. */
  readonly configure: (own: string, folder: string) => string;
  readonly language: string;
  readonly args: (file: string, folder: string) => string[];
}

const PROXIES: readonly Proxy[] = [
  {
    name: "caddy",
    language: "caddyfile",
    paths: ["/usr/bin/caddy", "/usr/local/bin/caddy"],
    configure: (own) => `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${own}`,
    args: (file) => ["run", "--adapter", "caddyfile", "--config", file],
  },
  {
    name: "nginx",
    language: "nginx",
    paths: ["/usr/sbin/nginx", "/usr/local/sbin/nginx"],
    configure: (own, folder) =>
      `daemon off;\npid ${folder}/nginx.pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n${[
        "client_body",
        "proxy",
        "fastcgi",
        "uwsgi",
        "scgi",
      ]
        .map((name) => `${name}_temp_path ${folder}/${name};`)
        .join("\n")}\n${own}\n}\n`,
    args: (file, folder) => ["-c", file, "-p", folder],
  },
];

describe.each(PROXIES)("$name as docs/production.md configures it", (proxy) => {
  const program = proxy.paths.find((path) => existsSync(path));
  const skipped = leftOut(program ? undefined : `there is no ${proxy.name} here`);

  describe.skipIf(skipped)(`in front of a platform${skipped}`, () => {
    const folder = new Folder();
    let world: World;
    let running: ChildProcess;
    let port: number;
    let ca: Buffer;
    let caller: string;

    beforeAll(async () => {
      mkdirSync(folder.path, { recursive: true });
      const [crt, key] = [join(folder.path, "tls.crt"), join(folder.path, "tls.key")];
      await promisify(execFile)("openssl", [
        ...[
          "req",
          "-x509",
          "-newkey",
          "rsa:2048",
          "-nodes",
          "-days",
          "2",
          "-subj",
          "/CN=localhost",
        ],
        ...[
          "-addext",
          "subjectAltName=DNS:localhost,DNS:acme.localhost,DNS:other.localhost,DNS:*.acme.apps.localhost",
        ],
        ...["-keyout", key, "-out", crt],
      ]);
      ca = readFileSync(crt);
      world = await World.start({
        env: {
          TESSERA_PUBLIC_URL: "https://localhost",
          TESSERA_TRUSTED_PROXIES: "127.0.0.1,::1",
          TESSERA_PROXY_SECRET: SECRET,
        },
      });
      await world.deployed("echo", await artifact());
      ({ value: caller } = await world.platform.createToken(world.cookie, {
        allowed_networks: [`${CALLER}/32`],
      }));
      port = await freePort();
      const own = blockOf(proxy.language)
        .replaceAll("127.0.0.1:3000", `127.0.0.1:${world.platform.started.port}`)
        .replaceAll("/etc/ssl/tessera.crt", crt)
        .replaceAll("/etc/ssl/tessera.key", key)
        .replace("listen 443", `listen 127.0.0.1:${port}`)
        .replaceAll(
          /tessera\.example\.com(,?) \*\.tessera\.example\.com(,?) \*\.acme\.apps\.example\.com/g,
          proxy.name === "caddy"
            ? `localhost:${port}, *.localhost:${port}, *.acme.apps.localhost:${port}`
            : "localhost *.localhost *.acme.apps.localhost",
        );
      expect(own).toContain(SECRET);
      const file = join(folder.path, `${proxy.name}.conf`);
      writeFileSync(file, proxy.configure(own, folder.path));
      running = spawn(program ?? "", proxy.args(file, folder.path), {
        stdio: ["ignore", "ignore", "pipe"],
        env: { PATH: process.env.PATH, HOME: folder.path },
      });
      let said = "";
      running.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
        said += chunk;
      });
      await until(
        async () => running.exitCode !== null || (await listens(port)),
        (hasBegun) => hasBegun,
      );
      expect(running.exitCode, said).toBe(null);
    });
    afterAll(async () => {
      if (running?.exitCode === null) {
        running.kill("SIGTERM");
        await once(running, "exit");
      }
      await world?.[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    });

    const ask = async (
      path: string,
      headers: IncomingHttpHeaders = {},
      { body, host = "localhost" }: { body?: object; host?: string } = {},
    ) => {
      const asked = request({
        ...{ host: "127.0.0.1", port, path, ca, servername: host, localAddress: CALLER },
        method: body ? "POST" : "GET",
        headers: { host, ...(body && { "content-type": "application/json" }), ...headers },
      });
      asked.end(body && JSON.stringify(body));
      const [answer] = await once(asked, "response");
      return { status: answer.statusCode, headers: answer.headers, text: await text(answer) };
    };
    const token = () => ({ authorization: `Bearer ${caller}` });

    it("passes calls on over TLS, by the header and by the deployment's host", async () => {
      expect((await ask("/livez")).status).toBe(200);
      const body = { text: "hello" };
      const named = { "tessera-deployment": "acme/echo" };
      expect(await ask("/say", named, { body })).toMatchObject({ status: 200, text: "one hello" });
      const host = "echo.acme.apps.localhost";
      expect(await ask("/say", {}, { body, host })).toMatchObject({
        status: 200,
        text: "one hello",
      });
    });

    it("serves an organization at its own host, about which a call is that names none", async () => {
      const { status, text } = await ask("/api/v1/deployments", token(), {
        host: "acme.localhost",
      });
      expect([status, JSON.parse(text).deployments]).toMatchObject([200, [{ name: "echo" }]]);
      const other = await ask("/api/v1/deployments", token(), { host: "other.localhost" });
      expect([other.status, other.text]).toEqual([
        404,
        expect.stringContaining("ORGANIZATION_NOT_FOUND"),
      ]);
      expect((await ask("/", {}, { host: "acme.localhost" })).status).toBe(200);
    });

    it("says which address the client has, and nobody else says so", async () => {
      expect((await ask("/api/v1/me", token())).status).toBe(200);
      const { value } = await world.platform.createToken(world.cookie, {
        allowed_networks: ["203.0.113.0/24"],
      });
      const forged = {
        authorization: `Bearer ${value}`,
        "x-forwarded-for": "203.0.113.7",
        forwarded: "for=203.0.113.7",
      };
      expect((await ask("/api/v1/me", forged)).status).toBe(401);
      const direct = { ...token(), "x-forwarded-for": CALLER };
      expect(await world.platform.whoIs(direct)).toBe(401);
    });

    it("makes sessions for https alone", async () => {
      const credentials = { email: "ada@example.com", password: "a long enough password" };
      const signedIn = await ask("/api/v1/auth:signIn", {}, { body: credentials });
      expect(signedIn.status).toBe(200);
      expect(signedIn.headers["set-cookie"]?.[0]).toMatch(/^__Host-.*; Secure$/);
    });

    it("passes gRPC on, with its trailers", async () => {
      const transport = createGrpcTransport({
        baseUrl: `https://localhost:${port}`,
        nodeOptions: { ca },
      });
      const { check } = createClient(Health, transport);
      expect((await check({})).status).toBe(1);
      const endpoints = createClient(EndpointService, transport);
      const called = await endpoints.callEndpoint({
        deployment: "acme/echo",
        endpoint: "say",
        input: { case: "arguments", value: { text: "over gRPC" } },
      });
      expect(JSON.stringify(called)).toContain("one over gRPC");
      const missing = endpoints.callEndpoint({ deployment: "acme/echo", endpoint: "nothing" });
      await expect(missing).rejects.toThrow(/not_found/);
    });

    it("sends each event when it happens", async () => {
      const named = { "tessera-deployment": "acme/echo" };
      const body = { text: "task", forMs: 1_500 };
      const submitted = await ask("/work/submit", named, { body });
      expect(submitted.status, submitted.text).toBe(202);
      const id = JSON.parse(submitted.text).task_id;
      const asked = request({
        ...{ host: "127.0.0.1", port, ca, servername: "localhost" },
        path: `/work/events?task_id=${id}`,
        headers: { host: "localhost", ...named },
      });
      asked.end();
      const [answer] = await once(asked, "response");
      expect(answer.headers["content-type"]).toContain("text/event-stream");
      const chunks: string[] = [];
      for await (const chunk of answer.setEncoding("utf8")) {
        chunks.push(chunk);
      }
      // What happened first did not wait for the end.
      expect(chunks.length).toBeGreaterThan(1);
      expect(chunks[0]).not.toContain("success");
      expect(chunks.join("")).toContain("success");
    });
  });
});

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
