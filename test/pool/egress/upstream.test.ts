/** The operator's own proxy between an egress proxy and what it connects to. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer as createHttp, type IncomingMessage, request, type Server } from "node:http";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it, onTestFinished } from "vitest";
import { EgressPolicy } from "../../../src/pool/egress/policy.ts";
import { EgressProxy } from "../../../src/pool/egress/proxy.ts";
import { upstreamProxies } from "../../../src/pool/egress/upstream.ts";

/** A proxy that connects all targets to one port, and what it was asked. */
interface OwnProxy {
  readonly address: string;
  readonly asked: string[];
  readonly credentials: (string | undefined)[];
}

async function ownProxy(port: number, status = 200): Promise<OwnProxy> {
  const asked: string[] = [];
  const credentials: (string | undefined)[] = [];
  const server = createHttp();
  server.on("connect", (req: IncomingMessage, socket: Socket) => {
    asked.push(req.url ?? "");
    credentials.push(req.headers["proxy-authorization"]);
    if (status !== 200) {
      socket.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    const target = connect(port, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      target.pipe(socket).pipe(target);
    });
    socket.on("error", () => target.destroy());
    target.on("error", () => socket.destroy());
  });
  return { address: `127.0.0.1:${await listening(server)}`, asked, credentials };
}

async function listening(server: Server | ReturnType<typeof createServer>): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** A server that greets. */
async function greeter(): Promise<number> {
  return await listening(createServer((socket) => socket.end("hello")));
}

interface Asker {
  /** What a CONNECT is answered, with all that follows. */
  ask(target: string): Promise<string>;
  readonly path: string;
  readonly lines: string[];
}

async function egress(
  env: NodeJS.ProcessEnv,
  { allowed = [], names = {} }: { allowed?: string[]; names?: Record<string, string[]> } = {},
): Promise<Asker> {
  const folder = mkdtempSync(join(tmpdir(), "upstream-"));
  const lines: string[] = [];
  const proxy = new EgressProxy({
    path: join(folder, "egress.sock"),
    policy: new EgressPolicy({ network: { access: "open", hosts: [] }, allowed }),
    onDecision() {},
    onLine: (line) => lines.push(line),
    upstream: upstreamProxies(env),
    resolve: async (name) => {
      const found = names[name];
      if (found === undefined) {
        throw new Error("unknown");
      }
      return await Promise.resolve(found);
    },
  });
  await proxy.start();
  onTestFinished(async () => {
    await proxy[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });
  return {
    ...{ path: proxy.path, lines },
    async ask(target) {
      const socket = connect({ path: proxy.path, allowHalfOpen: true });
      socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
      const answered = await text(socket);
      socket.destroy();
      return answered;
    },
  };
}

describe("the operator's proxy", () => {
  it("connects to what this machine knows nothing of, with its credentials, which nobody sees", async () => {
    const own = await ownProxy(await greeter());
    const { ask, lines } = await egress({ HTTPS_PROXY: `http://ada:p%40ss@${own.address}` });
    expect(await ask("registry.example:443")).toMatch(/^HTTP\/1.1 200[\s\S]*hello$/);
    expect(own.asked).toEqual(["registry.example:443"]);
    expect(own.credentials).toEqual([`Basic ${Buffer.from("ada:p@ss").toString("base64")}`]);
    expect(lines).toEqual([]);
  });

  it("is used for plain requests where HTTP_PROXY names it, and small letters go before capitals", async () => {
    const hello = createHttp((req, res) => res.end(`hello ${req.headers.host}`));
    const port = await listening(hello);
    const [own, other] = [await ownProxy(port), await ownProxy(port)];
    const { path } = await egress({
      ...{ http_proxy: own.address, HTTP_PROXY: `http://${other.address}` },
      HTTPS_PROXY: `http://${other.address}`,
    });
    const asking = request({ socketPath: path, path: "http://mirror.example/layer", agent: false });
    asking.end();
    const [res] = (await once(asking, "response")) as [IncomingMessage];
    expect(await text(res)).toBe("hello mirror.example");
    expect(own.asked).toEqual(["mirror.example:80"]);
    expect(other.asked).toEqual([]);
  });

  it.each([
    ["*", "registry.example"],
    ["example", "registry.example"],
    [".example", "registry.example"],
    ["other, registry.example:443", "registry.example"],
    ["203.0.113.0/24", "203.0.113.7"],
  ])("is not used for what NO_PROXY names: %s", (exceptions, host) => {
    const find = upstreamProxies({ HTTPS_PROXY: "proxy:3128", NO_PROXY: exceptions });
    expect(find?.({ host, port: 443 })).toBeUndefined();
  });

  it("is used for names that only look like those of NO_PROXY", () => {
    const find = upstreamProxies({
      HTTPS_PROXY: "proxy:3128",
      NO_PROXY: "example.com,b.c:5000,203.0.113.0/24",
    });
    expect(find?.({ host: "notexample.com", port: 443 })).toMatchObject({ host: "proxy" });
    expect(find?.({ host: "b.c", port: 443 })).toMatchObject({ port: 3128 });
    expect(find?.({ host: "203.0.114.7", port: 443 })).toMatchObject({ port: 3128 });
    expect(find?.({ host: "127.0.0.1", port: 443 })).toBeUndefined();
  });

  it("leads to nothing that the policy refuses, nor to names of private networks", async () => {
    const own = await ownProxy(await greeter());
    const { ask } = await egress(
      { HTTPS_PROXY: own.address },
      { names: { "inside.example": ["8.8.8.8", "10.0.0.7"] }, allowed: ["allowed.corp:443"] },
    );
    for (const target of [
      ...[
        "10.0.0.1:443",
        "169.254.169.254:443",
        "inside.example:443",
        "metadata.google.internal:443",
      ],
      ...["db:443", "wiki.corp:443", "allowed.corp:444"],
    ]) {
      expect(await ask(target)).toContain("HTTP/1.1 403");
    }
    expect(own.asked).toEqual([]);
    expect(await ask("allowed.corp:443")).toContain("hello");
  });

  it.each([
    [407, "asks for other credentials (407)"],
    [403, "refuses registry.example:443 (403)"],
    [503, "does not reach registry.example:443 (503)"],
  ])("is named when it answers %i, without its password", async (status, message) => {
    const own = await ownProxy(0, status);
    const { ask, lines } = await egress({ HTTPS_PROXY: `http://ada:secret@${own.address}` });
    const answered = await ask("registry.example:443");
    expect(answered).toContain(`the operator's proxy ${own.address} (HTTPS_PROXY) ${message}`);
    expect(lines).toHaveLength(1);
    expect(`${answered}${lines.join()}`).not.toContain("secret");
  });

  it("is named when nobody listens there, or what listens is no proxy", async () => {
    const { ask } = await egress({ https_proxy: "127.0.0.1:1" });
    expect(await ask("registry.example:443")).toContain(
      "127.0.0.1:1 (https_proxy) cannot be used for registry.example:443: ECONNREFUSED",
    );
    const port = await greeter();
    const other = await egress({ https_proxy: `127.0.0.1:${port}` });
    expect(await other.ask("registry.example:443")).toContain("cannot be used");
  });

  it.each(["socks5://ada:secret@proxy:1080", "https://ada:secret@proxy", "http://", "a b"])(
    "must be one over HTTP: %s",
    (value) => {
      const read = () => upstreamProxies({ HTTPS_PROXY: value });
      expect(read).toThrow("the variable HTTPS_PROXY must be the address of a proxy over HTTP");
      expect(read).not.toThrow("secret");
    },
  );

  it("is none where the variables are empty", () => {
    expect(upstreamProxies({ HTTPS_PROXY: "", NO_PROXY: "*" })).toBeUndefined();
  });
});
