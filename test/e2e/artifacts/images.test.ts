/** Container images, from a real registry to a program in the sandbox. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Images, type ImagesOptions } from "../../../src/artifacts/images/images.ts";
import { readImageLock } from "../../../src/artifacts/images/lock.ts";
import { spawnSandboxed } from "../../../src/pool/sandbox/spawn.ts";
import { kernelSandbox, skipped as noSandbox } from "../../pool/sandbox/available.ts";
import { copied, skipped as noRegistry, TestRegistry, tarOf } from "./registry.ts";

const MEBIBYTE = 1024 ** 2;
const PATH = process.env.PATH ?? "";
const skipped = noSandbox || noRegistry;
const LIBRARY = "/usr/lib/x86_64-linux-gnu/libm.so.6";
const HELLO = [{ path: "hello.txt", content: "hello from an image" }];

/** `cap_net_raw+ep`, as the kernel keeps it. */
const CAPABILITY = Buffer.from("0100000200200000000000000000000000000000", "hex");

/** A record of an extended attribute (POSIX pax). */
function paxRecord(name: string, value: Buffer): Buffer {
  const rest = Buffer.concat([Buffer.from(` SCHILY.xattr.${name}=`), value, Buffer.from("\n")]);
  const length = rest.length + String(rest.length + 2).length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

describe.skipIf(skipped)(`container images${skipped}`, () => {
  let home: string;
  let registry: TestRegistry;
  beforeAll(async () => {
    if (!skipped) {
      registry = await TestRegistry.open();
    }
  });
  afterAll(() => registry?.[Symbol.asyncDispose]());
  beforeEach(() => {
    home = realpathSync(mkdtempSync(join(tmpdir(), "tessera-images-")));
  });
  afterEach(() => rmSync(home, { recursive: true }));

  const open = async ({
    // What others write meanwhile counts, too.
    maxMiB = 8_192,
    searchPath = PATH,
    allowed = [registry.host],
    idleMs = 5_000,
    maxFiles = 10_000,
    env = { SSL_CERT_FILE: registry.authority },
  }: Partial<ImagesOptions> & { readonly maxMiB?: number } = {}): Promise<Images> => {
    const sandbox = kernelSandbox();
    const images = new Images({
      ...{ folder: join(home, "store"), maxBytesPerOrganization: maxMiB * MEBIBYTE, maxFiles },
      ...{
        sandbox,
        searchPath,
        env,
        allowed,
        idleMs,
        log: { info() {}, warn() {} },
        now: Date.now,
      },
    });
    await images.start();
    return images;
  };

  /** Runs a program of an image in the sandbox, or Node over it. */
  const run = async (images: Images, lock: string, program: string, ...args: string[]) => {
    const { image } = await images.hold({ lock });
    const { bubblewrap, filter } = kernelSandbox();
    const scratch = mkdtempSync(join(home, "scratch-"));
    const { child } = spawnSandboxed({
      ...{ bubblewrap: [bubblewrap], filter: filter({ processes: true }), writable: [scratch] },
      // A library of a driver is in the machine's folder of libraries, too.
      ...{
        read: [realpathSync(process.execPath), LIBRARY],
        image,
        program,
        args,
        env: { PATH: "/bin" },
      },
    });
    const { stdout, stderr } = child;
    return stdout && stderr ? (await Promise.all([text(stdout), text(stderr)])).join("") : "";
  };

  it("pins a tag to the digest that it has now, which a later push does not change", async () => {
    const name = registry.push("moving", { layers: [HELLO] });
    const images = await open();
    const lock = await images.lock(name);
    registry.push("moving", { layers: [[{ path: "hello.txt", content: "another" }]] });
    expect(lock).toMatch(new RegExp(`^${name}@sha256:[0-9a-f]{64} amd64 \\d+\n$`));
    expect(await images.lock(`${name}:latest`)).not.toBe(lock);
    const { image } = await images.hold({ lock });
    expect(readFileSync(join(image.root, "hello.txt"), "utf8")).toBe("hello from an image");
  });

  it("takes of a list of manifests the one for its architecture", async () => {
    const one = registry.push("one:amd64", { layers: [HELLO] });
    const two = registry.push("one:arm64", { layers: [HELLO], architecture: "arm64" });
    const images = await open();
    const list = await registry.list("one:list", [
      { name: two, architecture: "arm64" },
      { name: one, architecture: "amd64" },
    ]);
    expect(await images.lock(list)).toBe(await images.lock(one));
    const others = await registry.list("one:others", [{ name: two, architecture: "arm64" }]);
    await expect(images.lock(others)).rejects.toThrow("is for linux/arm64, and the machine");
    await expect(images.lock(two)).rejects.toThrow("is for linux/arm64, and the machine");
    const lock = (await images.lock(one)).replace("amd64", "arm64");
    await expect(images.hold({ lock })).rejects.toThrow("is for linux/arm64, and this machine");
  });

  it("makes an image once for all who hold it at once, keeps it, and removes it when unused", async () => {
    const lock = await (await open()).lock(
      registry.push("kept", { layers: [HELLO], env: ["A=b"] }),
    );
    const said: string[] = [];
    const images = await open();
    const [first, second] = await Promise.all([
      images.hold({ lock }, { onProgress: (line) => said.push(line) }),
      images.hold({ lock }, { onProgress: (line) => said.push(line) }),
    ]);
    expect(first.image).toEqual(second.image);
    expect(first.image.variables).toEqual({ A: "b" });
    expect(said).toHaveLength(2);
    const again = await (await open({ allowed: [] })).hold({ lock });
    expect(again.folder).toBe(first.folder);
    expect(readdirSync(first.folder).toSorted()).toEqual([
      "contents.json",
      "layers.json",
      "root",
      "variables.json",
    ]);
    first.release();
    expect(await images.sweep({ unusedForMs: 0 })).toBe(0);
    second.release();
    expect(await images.sweep({ unusedForMs: 0 })).toBe(1);
  });

  it("keeps no device, no bits that give rights and no variable that the loader reads", async () => {
    const name = registry.push("rights", {
      layers: [
        [
          { path: "bin/tool", content: "x", mode: 0o6755 },
          { path: "secret", content: "x", mode: 0o600 },
          {
            path: "about-ping",
            kind: "pax",
            content: paxRecord("security.capability", CAPABILITY),
          },
          { path: "bin/ping", content: "x", mode: 0o755 },
          { path: "pipe", kind: "pipe" },
          { path: "null", kind: "device" },
          { path: "etc/ld.so.preload", link: "/tmp/evil.so" },
          { path: "tmp/left", content: "x" },
          { path: "closed", kind: "folder", mode: 0 },
        ],
      ],
      env: ["LD_PRELOAD=/lib/evil.so", "NODE_OPTIONS=--x", "PYTHONHOME=/", "=x", "PATH=/opt/bin"],
    });
    const images = await open();
    const { image } = await images.hold({ lock: await images.lock(name) });
    const of = (path: string) => lstatSync(join(image.root, path), { throwIfNoEntry: false });
    expect((of("bin/tool")?.mode ?? 0) & 0o7777).toBe(0o755);
    expect((of("bin/ping")?.mode ?? 0) & 0o7777).toBe(0o755);
    expect((of("secret")?.mode ?? 0) & 0o7777).toBe(0o644);
    expect((of("closed")?.mode ?? 0) & 0o7777).toBe(0o755);
    expect(of("null")?.isCharacterDevice() ?? false).toBe(false);
    expect(of("pipe")?.isFIFO() ?? false).toBe(false);
    expect(of("etc/ld.so.preload")).toBeUndefined();
    const led = registry.push("led-away", { layers: [[{ path: "etc", link: "/tmp" }]] });
    await expect(images.hold({ lock: await images.lock(led) })).rejects.toThrow(
      "its /etc is no folder",
    );
    expect(readdirSync(join(image.root, "tmp"))).toEqual([]);
    expect(image.variables).toEqual({ PATH: "/opt/bin" });
  });

  it("writes nothing outside its folder for a layer whose paths or links lead out", async () => {
    const outside = join(home, "outside");
    mkdirSync(outside);
    const up = "../".repeat(12);
    const name = registry.push("escape", {
      layers: [
        [
          { path: `${up}${outside.slice(1)}/one`, content: "evil" },
          { path: `${outside}/two`, content: "evil" },
          { path: "out", link: outside },
          { path: "relative", link: `${up}${outside.slice(1)}` },
        ],
        [
          { path: "out/three", content: "evil" },
          { path: "relative/four", content: "evil" },
        ],
      ],
    });
    const images = await open();
    await images.hold({ lock: await images.lock(name) }).catch(() => {});
    expect(readdirSync(outside)).toEqual([]);
    const hard = registry.push("hard", {
      layers: [[{ path: "passwd", link: `${up}etc/passwd`, hard: true }]],
    });
    await expect(images.hold({ lock: await images.lock(hard) })).rejects.toThrow("is not used");
  });

  it("makes no place for the machine's files outside of an image whose folders are links", async () => {
    const outside = join(home, "outside");
    mkdirSync(outside);
    const name = registry.push("links", {
      layers: [
        [
          { path: "usr", link: outside },
          { path: "lib64", link: `/../../../..${outside}` },
          { path: home.split("/")[1] ?? "", link: "/elsewhere" },
          { path: "elsewhere", link: "elsewhere" },
        ],
      ],
    });
    const images = await open();
    const lock = await images.lock(name);
    await run(images, lock, process.execPath, "--version").catch(() => {});
    expect(readdirSync(outside)).toEqual([]);
  });

  it("says what is wrong with an image whose files have names that are no text", async () => {
    const images = await open();
    const lock = await images.lock(registry.push("odd", { layers: [[{ path: "a\xff" }]] }));
    await expect(images.hold({ lock })).rejects.toThrow("is no UTF-8");
  });

  it("breaks off an image that unpacks to more than its organization has left", async () => {
    const zeros = tarOf([{ path: "zeros", content: Buffer.alloc(400 * MEBIBYTE) }]);
    const name = registry.push("bomb", { layers: [zeros] });
    const images = await open({ maxMiB: 64 });
    const lock = await images.lock(name);
    expect(readImageLock(lock).size).toBeLessThan(MEBIBYTE);
    await expect(images.hold({ lock })).rejects.toThrow("more than the 64 MiB of disk");
    expect(readdirSync(join(home, "store"))).toEqual(["downloads"]);
  });

  it("refuses an image with more files than a root may have", async () => {
    const many = Array.from({ length: 300 }, (_, number) => ({ path: `file${number}` }));
    const name = registry.push("many", { layers: [many] });
    const images = await open({ maxFiles: 100 });
    await expect(images.hold({ lock: await images.lock(name) })).rejects.toThrow("files");
  });

  it("says what to install where there is no skopeo, or no umoci", async () => {
    const images = await open({ searchPath: "/nowhere" });
    const install = "its operator installs the packages skopeo and umoci";
    await expect(images.lock("debian:12")).rejects.toThrow(`has no skopeo: ${install}`);
    const lock = await (await open()).lock(registry.push("tools", { layers: [HELLO] }));
    const programs = join(home, "programs");
    mkdirSync(programs);
    symlinkSync("/usr/bin/skopeo", join(programs, "skopeo"));
    const half = await open({ searchPath: programs });
    await expect(half.hold({ lock })).rejects.toThrow(`has no umoci: ${install}`);
  });

  it("asks no registry on the loopback or at a private address, unless the operator allows it", async () => {
    const name = registry.push("private", { layers: [HELLO] });
    const images = await open({ allowed: [] });
    await expect(images.lock(name)).rejects.toThrow("is a loopback address");
    await expect(images.lock("10.0.0.1:5000/acme/reader")).rejects.toThrow("is a private address");
    await expect(images.lock("169.254.169.254/acme/reader")).rejects.toThrow("link-local");
    await expect(images.lock("localhost:1/acme/reader")).rejects.toThrow("is a loopback address");
    await expect(images.lock("registry.invalid/reader")).rejects.toThrow("cannot be reached");
  });

  it.each<[string, string]>([
    ["absent", "has no .*absent of this tag or digest"],
    ["kept:none", "has no .*kept of this tag or digest"],
  ])("names an image that the registry does not have: %s", async (name, message) => {
    registry.push("kept", { layers: [HELLO] });
    const images = await open();
    await expect(images.lock(`${registry.host}/${name}`)).rejects.toThrow(new RegExp(message));
  });

  it("trusts no registry without a certificate from an authority that it knows", async () => {
    const images = await open();
    const untrusted = await open({ env: {} });
    const name = registry.push("untrusted", { layers: [HELLO] });
    await expect(images.lock(name)).resolves.toContain("untrusted@");
    await expect(untrusted.lock(name)).rejects.toThrow("certificate");
  });

  it("leaves room for others when one organization asks for many images", async () => {
    const host = await registry.serve(() => {});
    const images = await open({ allowed: [host], idleMs: 1_000 });
    const asked = Array.from({ length: 7 }, () =>
      images.lock(`${host}/slow`, { organizationId: "one" }),
    );
    const ended = await Promise.allSettled([
      ...asked,
      images.lock(`${host}/slow`, { organizationId: "two" }),
    ]);
    const reasons = ended.map((each) => (each.status === "rejected" ? String(each.reason) : ""));
    expect(reasons.map((reason) => /too many images are fetched now/.test(reason))).toEqual([
      ...[false, false, false, false, false, false, true],
      false,
    ]);
  });

  it("has the operator's credentials for a registry, and names one that asks for some", async () => {
    registry.push("closed", { layers: [HELLO] });
    const basic = `Basic ${Buffer.from("ada:a password").toString("base64")}`;
    const host = await registry.serve((req, res) => {
      if (req.headers.authorization === basic) {
        registry.forward(req.url ?? "", res, req.headers.accept);
      } else {
        res.writeHead(401, { "www-authenticate": 'Basic realm="closed"' }).end();
      }
    });
    const file = join(home, "auth.json");
    const auths = { [host]: { auth: basic.slice("Basic ".length) } };
    writeFileSync(file, JSON.stringify({ auths }), { mode: 0o600 });
    const given = await open({
      allowed: [host],
      env: { SSL_CERT_FILE: registry.authority, REGISTRY_AUTH_FILE: file },
    });
    expect(await given.lock(`${host}/closed`)).toContain("/closed@sha256:");
    const images = await open({ allowed: [host] });
    await expect(images.lock(`${host}/closed`)).rejects.toThrow("to nobody without credentials");
  });

  it.each(["0", "3600"])(
    "says that a registry takes no more requests, for %s s",
    async (seconds) => {
      const host = await registry.imitate((path, res) => {
        if (path === "/v2/") {
          return false;
        }
        res.writeHead(429, { "retry-after": seconds, "content-type": "application/json" });
        res.end('{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}');
        return true;
      });
      const images = await open({ allowed: [host] });
      await expect(images.lock(`${host}/acme/reader`)).rejects.toThrow(
        "takes no more requests now (429)",
      );
    },
  );

  it("follows no redirect to the loopback or to a private address", async () => {
    registry.push("led", { layers: [HELLO] });
    let asked = 0;
    const secret = await registry.serve((_, res) => {
      asked += 1;
      res.end("a secret of the machine");
    });
    for (const target of [
      `https://${secret}/x`,
      "https://10.0.0.1/x",
      "http://169.254.169.254/x",
    ]) {
      const host = await registry.imitate((path, res) => {
        if (path.includes("/blobs/")) {
          res.writeHead(307, { location: target }).end();
          return true;
        }
        return false;
      });
      const images = await open({ allowed: [host] });
      await expect(images.lock(`${host}/led`)).rejects.toThrow(
        /refused|private address|link-local address/,
      );
    }
    expect(asked).toBe(0);
  });

  it("goes through the operator's proxy, which alone knows the registry", async () => {
    const [, port = ""] = registry.host.split(":");
    registry.push("proxied", { layers: [HELLO] });
    const asked: string[] = [];
    const proxy = createServer();
    const basic = `Basic ${Buffer.from("ada:secret").toString("base64")}`;
    proxy.on("connect", (req: IncomingMessage, socket: Socket) => {
      asked.push(req.url ?? "");
      if (req.headers["proxy-authorization"] !== basic) {
        socket.end("HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n");
        return;
      }
      const target = connect(Number(port), "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        target.pipe(socket).pipe(target);
      });
      socket.on("error", () => target.destroy());
      target.on("error", () => socket.destroy());
    });
    proxy.listen(0, "127.0.0.1");
    await once(proxy, "listening");
    try {
      const { port: own } = proxy.address() as AddressInfo;
      const through = async (credentials: string): Promise<Images> =>
        await open({
          allowed: [],
          env: {
            SSL_CERT_FILE: registry.authority,
            HTTPS_PROXY: `http://${credentials}127.0.0.1:${own}`,
          },
        });
      const name = `registry.invalid:${port}/proxied`;
      const images = await through("ada:secret@");
      const { image } = await images.hold({ lock: await images.lock(name) });
      expect(readFileSync(join(image.root, "hello.txt"), "utf8")).toBe("hello from an image");
      expect(new Set(asked)).toEqual(new Set([`registry.invalid:${port}`]));
      await expect((await through("")).lock(name)).rejects.toThrow("other credentials (407)");
      await expect((await through("ada:other-secret@")).lock(name)).rejects.not.toThrow(
        "other-secret",
      );
      await expect(images.lock("10.0.0.1:5000/acme/reader")).rejects.toThrow("private address");
      await expect((await open({ env: { HTTPS_PROXY: "socks5://x" } })).lock(name)).rejects.toThrow(
        "HTTPS_PROXY must be the address of a proxy over HTTP",
      );
    } finally {
      proxy.closeAllConnections();
      proxy.close();
    }
  });

  it("does not wait for a registry that is silent", async () => {
    const host = await registry.serve(() => {});
    const images = await open({ allowed: [host], idleMs: 200 });
    await expect(images.lock(`${host}/acme/reader`)).rejects.toThrow("does not answer");
  });

  it("takes no manifest and no layer that is not of its digest", async () => {
    const name = registry.push("changed", { layers: [HELLO] });
    const [path = "", other = ""] = ["changed", registry.push("other", { layers: [[]] })];
    const lock = await (await open()).lock(name);
    const { digest } = readImageLock(lock);
    const images = await open();
    const instead = readImageLock(await images.lock(other)).digest;
    const manifests = await registry.imitate((asked, res) => {
      if (!asked.includes(`/manifests/sha256:${digest}`)) {
        return false;
      }
      registry.forward(
        `/v2/other/manifests/sha256:${instead}`,
        res,
        "application/vnd.oci.image.manifest.v1+json",
      );
      return true;
    });
    const changed = await open({ allowed: [manifests] });
    await expect(changed.lock(`${manifests}/${path}@sha256:${digest}`)).rejects.toThrow(
      "another content than the digest",
    );
    const at = (host: string): string => lock.replace(registry.host, host);
    await expect(changed.hold({ lock: at(manifests) })).rejects.toThrow(/digest|match/);
    const layers = await registry.imitate((asked, res) => {
      const isBlob =
        asked.includes("/blobs/") && !asked.includes(createHash("sha256").digest("hex"));
      if (isBlob) {
        res.end("other bytes");
      }
      return isBlob;
    });
    const broken = await open({ allowed: [layers] });
    await expect(broken.hold({ lock: at(layers) })).rejects.toThrow(/digest|match|size/i);
  });

  it("is the root of a sandbox, with its programs, and Node beside them", async () => {
    const made = join(home, "made");
    for (const folder of ["bin", "lib64", "usr/lib/x86_64-linux-gnu", "usr/bin"]) {
      mkdirSync(join(made, folder), { recursive: true });
    }
    const put = (from: string, path: string): void =>
      writeFileSync(join(made, path), copied(from, path).content ?? "", { mode: 0o755 });
    put("/bin/cat", "bin/cat");
    put("/lib64/ld-linux-x86-64.so.2", "lib64/ld-linux-x86-64.so.2");
    put("/usr/lib/x86_64-linux-gnu/libc.so.6", "usr/lib/x86_64-linux-gnu/libc.so.6");
    writeFileSync(join(made, "motd"), "hello from buildah");
    const name = registry.build("whole", made, ["--env", "PATH=/bin", "--env", "WHO=image"]);
    const images = await open();
    const lock = await images.lock(name);
    expect((await images.hold({ lock })).image.variables).toEqual({ PATH: "/bin", WHO: "image" });
    expect(await run(images, lock, "/bin/cat", "/motd")).toBe("hello from buildah");
    const program = [
      "const fs = require('fs'), cp = require('child_process');",
      "fs.writeFileSync('/tmp/made', 'temporary');",
      "const tries = ['/motd', '/bin/new', '/etc/new', '/run/new'].map((path) => {",
      "  try { fs.writeFileSync(path, ''); return 'written'; } catch (err) { return err.code; }",
      "});",
      "console.log(cp.execFileSync('cat', ['/motd', '/tmp/made']).toString(), ...tries,",
      "  fs.existsSync('/etc/passwd'), fs.existsSync('/usr/bin/git'));",
    ].join("\n");
    expect(await run(images, lock, realpathSync(process.execPath), "-e", program)).toBe(
      "hello from buildahtemporary EROFS EROFS ENOENT EROFS false false\n",
    );
  });

  it.each([
    ["without a shell or a C library", HELLO],
    [
      "with an older C library",
      [
        copied("/lib64/ld-linux-x86-64.so.2", "lib64/ld-linux-x86-64.so.2"),
        {
          path: "lib/x86_64-linux-gnu/libc.so.6",
          content: "GNU C Library (old) release version 2.5",
        },
        copied("/bin/cat", "bin/cat"),
        ...HELLO,
      ],
    ],
    [
      "with another C library and another layout of folders",
      [
        { path: "usr/lib64/libz.so.1", content: "musl's" },
        { path: "lib", link: "usr/lib" },
        { path: "lib64", link: "usr/lib64" },
        { path: "bin", link: "usr/bin" },
        copied("/bin/cat", "usr/bin/cat"),
        ...HELLO,
      ],
    ],
  ])("runs Node and programs over an image %s", async (_, entries) => {
    const name = registry.push("small", { layers: [entries] });
    const images = await open();
    const lock = await images.lock(name);
    const program = "console.log(require('fs').readFileSync('/hello.txt', 'utf8'))";
    expect(await run(images, lock, realpathSync(process.execPath), "-e", program)).toBe(
      "hello from an image\n",
    );
    if (entries.some(({ path }) => path.endsWith("bin/cat"))) {
      expect(await run(images, lock, "/bin/cat", "/hello.txt")).toBe("hello from an image");
    }
    const { image } = await images.hold({ lock });
    expect(existsSync(join(image.root, "tmp"))).toBe(true);
  });
});
