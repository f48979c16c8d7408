/** A registry of container images for tests: Debian's docker-registry, over TLS on the loopback. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import type { IncomingMessage, RequestListener } from "node:http";
import { createServer, request, type Server } from "node:https";
import { type AddressInfo, connect, createServer as createPlainServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { gzipSync } from "node:zlib";
import { vi } from "vitest";
import { leftOut } from "../../needed.ts";

const PATH = process.env.PATH ?? "";
const TOOLS = ["docker-registry", "skopeo", "umoci", "buildah", "openssl"];

function missing(): string | undefined {
  const absent = TOOLS.filter(
    (tool) => !PATH.split(delimiter).some((folder) => existsSync(join(folder, tool))),
  );
  return absent.length === 0 ? undefined : `this machine has no ${absent.join(" and no ")}`;
}

/** What to add to the names of tests that need a registry; empty where it is. */
export const skipped = leftOut(missing());

/** An entry of a layer, as tar has it: nothing checks it. The path is Latin-1. */
export interface Entry {
  readonly path: string;
  readonly content?: string | Buffer;
  readonly mode?: number;
  /** The target of a link, which is symbolic unless it is hard. */
  readonly link?: string;
  readonly hard?: boolean;
  /** A folder, a device, a pipe, or records about the next entry. */
  readonly kind?: "folder" | "device" | "pipe" | "pax";
}

/** What an image is made of. */
export interface ImageOptions {
  readonly layers: readonly (readonly Entry[] | Buffer)[];
  readonly architecture?: string;
  readonly env?: readonly string[];
}

const HEADER_BYTES = 512;
const TYPES = {
  file: "0",
  hard: "1",
  symbolic: "2",
  device: "3",
  folder: "5",
  pipe: "6",
  pax: "x",
};

/** An archive (POSIX ustar) of these entries. */
export function tarOf(entries: readonly Entry[]): Buffer {
  const blocks = entries.flatMap(({ path, content = "", mode, link = "", hard, kind }) => {
    const bytes = Buffer.from(content);
    const linked = hard ? TYPES.hard : TYPES.symbolic;
    const type = kind === undefined ? (link === "" ? TYPES.file : linked) : TYPES[kind];
    const header = Buffer.alloc(HEADER_BYTES);
    const octal = (value: number, at: number, length: number): void => {
      header.write(`${value.toString(8).padStart(length - 1, "0")}\0`, at);
    };
    header.write(path, 0, "latin1");
    octal(mode ?? (kind === "folder" ? 0o755 : 0o644), 100, 8);
    octal(0, 108, 8);
    octal(0, 116, 8);
    octal(bytes.length, 124, 12);
    octal(0, 136, 12);
    header.write("        ", 148);
    header.write(type, 156);
    header.write(link, 157);
    header.write("ustar\x0000", 257);
    octal(kind === "device" ? 1 : 0, 329, 8);
    octal(kind === "device" ? 3 : 0, 337, 8);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
    return [
      header,
      bytes,
      Buffer.alloc((HEADER_BYTES - (bytes.length % HEADER_BYTES)) % HEADER_BYTES),
    ];
  });
  return Buffer.concat([...blocks, Buffer.alloc(2 * HEADER_BYTES)]);
}

/** A file of the machine as an entry of an image. */
export function copied(from: string, path: string): Entry {
  return { path, content: readFileSync(realpathSync(from)), mode: 0o755 };
}

export class TestRegistry implements AsyncDisposable {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), "tessera-registry-")));
  readonly #servers: Server[] = [];
  #registry: ChildProcess | undefined;
  #port = 0;

  /** Starts the registry. */
  static async open(): Promise<TestRegistry> {
    const registry = new TestRegistry();
    await registry.#start();
    return registry;
  }

  /** Its host and port. */
  get host(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /** The file of the authority that its certificate is from. */
  get authority(): string {
    return join(this.folder, "ca.crt");
  }

  /** A file with that authority and those of this machine. */
  authorities(): string {
    const path = join(this.folder, "authorities.crt");
    const machine = process.env.SSL_CERT_FILE ?? "/etc/ssl/certs/ca-certificates.crt";
    writeFileSync(path, [machine, this.authority].map((each) => readFileSync(each)).join("\n"));
    return path;
  }

  async #start(): Promise<void> {
    execFileSync(
      "openssl",
      [
        ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
        ...["-keyout", "key.pem", "-out", "ca.crt", "-days", "2", "-subj", "/CN=a test"],
        ...["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:registry.invalid"],
      ],
      { cwd: this.folder, stdio: "ignore" },
    );
    this.#port = await freePort();
    writeFileSync(
      join(this.folder, "config.yml"),
      JSON.stringify({
        version: 0.1,
        log: { level: "error", accesslog: { disabled: true } },
        storage: { filesystem: { rootdirectory: join(this.folder, "data") } },
        http: {
          addr: this.host,
          tls: { certificate: this.authority, key: join(this.folder, "key.pem") },
        },
      }),
    );
    this.#registry = spawn("docker-registry", ["serve", join(this.folder, "config.yml")], {
      stdio: "ignore",
    });
    await vi.waitFor(
      () =>
        new Promise<void>((settle, reject) => {
          const socket = connect(this.#port, "127.0.0.1");
          socket.once("error", reject);
          socket.once("connect", () => {
            socket.destroy();
            settle();
          });
        }),
      { timeout: 10_000 },
    );
  }

  /** Puts an image there as it is given, and returns its name. */
  push(name: string, { layers, architecture = "amd64", env = [] }: ImageOptions): string {
    const layout = mkdtempSync(join(this.folder, "layout-"));
    mkdirSync(join(layout, "blobs/sha256"), { recursive: true });
    const blob = (content: Buffer, mediaType: string): object => {
      const hex = createHash("sha256").update(content).digest("hex");
      writeFileSync(join(layout, "blobs/sha256", hex), content);
      return { mediaType, digest: `sha256:${hex}`, size: content.length };
    };
    const type = "application/vnd.oci.image";
    const tars = layers.map((each) => (Buffer.isBuffer(each) ? each : tarOf(each)));
    const config = {
      ...{ os: "linux", architecture, config: { Env: env } },
      rootfs: {
        type: "layers",
        diff_ids: tars.map((tar) => `sha256:${createHash("sha256").update(tar).digest("hex")}`),
      },
    };
    const manifest = {
      schemaVersion: 2,
      mediaType: `${type}.manifest.v1+json`,
      config: blob(Buffer.from(JSON.stringify(config)), `${type}.config.v1+json`),
      layers: tars.map((tar) => blob(gzipSync(tar), `${type}.layer.v1.tar+gzip`)),
    };
    const described = blob(Buffer.from(JSON.stringify(manifest)), manifest.mediaType);
    writeFileSync(join(layout, "oci-layout"), '{"imageLayoutVersion":"1.0.0"}');
    writeFileSync(
      join(layout, "index.json"),
      JSON.stringify({
        schemaVersion: 2,
        manifests: [{ ...described, annotations: { "org.opencontainers.image.ref.name": "it" } }],
      }),
    );
    this.#copy(`oci:${layout}:it`, name);
    return `${this.host}/${name}`;
  }

  /** Puts an image there that buildah makes of a folder, and returns its name. */
  build(name: string, folder: string, flags: readonly string[] = []): string {
    const storage = join(this.folder, "storage");
    const run = (...args: string[]): string =>
      execFileSync(
        "buildah",
        [
          "--storage-driver",
          "vfs",
          "--root",
          storage,
          "--runroot",
          join(this.folder, "run"),
          ...args,
        ],
        { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] },
      ).trim();
    const container = run("from", "scratch");
    run("add", container, folder, "/");
    run("config", ...flags, container);
    const layout = mkdtempSync(join(this.folder, "built-"));
    run("commit", container, `oci:${layout}:it`);
    run("rm", container);
    this.#copy(`oci:${layout}:it`, name);
    return `${this.host}/${name}`;
  }

  /** Makes a list of images that are there, by their names. */
  async list(
    name: string,
    images: readonly { readonly name: string; readonly architecture: string }[],
  ): Promise<string> {
    const manifests = images.map(({ name: each, architecture }) => {
      const text = this.#skopeo("inspect", "--raw", `docker://${each}`);
      const { mediaType } = JSON.parse(text) as { mediaType: string };
      return {
        ...{ mediaType, size: Buffer.byteLength(text), platform: { os: "linux", architecture } },
        digest: `sha256:${createHash("sha256").update(text).digest("hex")}`,
      };
    });
    const type = "application/vnd.oci.image.index.v1+json";
    const text = JSON.stringify({ schemaVersion: 2, mediaType: type, manifests });
    const [repository, tag = "latest"] = name.split(":");
    const ca = readFileSync(this.authority);
    const put = request(`https://${this.host}/v2/${repository}/manifests/${tag}`, {
      ...{ method: "PUT", ca, headers: { "content-type": type } },
    });
    const answered = once(put, "response") as Promise<[IncomingMessage]>;
    put.end(text);
    const [{ statusCode }] = await answered;
    if (statusCode !== 201) {
      throw new Error(`the registry took no list: ${statusCode}`);
    }
    return `${this.host}/${name}`;
  }

  /** The manifest of an image that is there. */
  manifest(name: string): unknown {
    return JSON.parse(this.#skopeo("inspect", "--raw", `docker://${this.host}/${name}`));
  }

  /** Another server with the same certificate; returns its host and port. */
  async serve(listener: RequestListener): Promise<string> {
    const server = createServer(
      { key: readFileSync(join(this.folder, "key.pem")), cert: readFileSync(this.authority) },
      listener,
    );
    this.#servers.push(server);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** A server that answers as the registry does, but for what `odd` answers itself; returns its host. */
  async imitate(
    odd: (path: string, res: Parameters<RequestListener>[1]) => boolean,
  ): Promise<string> {
    return await this.serve((req, res) => {
      const path = req.url ?? "";
      if (!odd(path, res)) {
        const { pathname } = new URL(path, "https://registry");
        this.forward(pathname, res, req.headers.accept);
      }
    });
  }

  /** Answers with what the registry has at a path. */
  forward(path: string, res: Parameters<RequestListener>[1], accept = "*/*"): void {
    const ca = readFileSync(this.authority);
    request(`https://${this.host}${path}`, { ca, headers: { accept } }, (answer) => {
      res.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(res);
    }).end();
  }

  #copy(from: string, name: string): void {
    this.#skopeo("copy", "--quiet", from, `docker://${this.host}/${name}`);
  }

  #skopeo(...args: string[]): string {
    return execFileSync("skopeo", ["--insecure-policy", ...args], {
      encoding: "utf8",
      env: { PATH, HOME: this.folder, TMPDIR: this.folder, SSL_CERT_FILE: this.authority },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#servers) {
      server.closeAllConnections();
      server.close();
    }
    const registry = this.#registry;
    if (registry !== undefined && registry.exitCode === null) {
      const exited = once(registry, "exit");
      registry.kill();
      await exited;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

async function freePort(): Promise<number> {
  const server = createPlainServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
