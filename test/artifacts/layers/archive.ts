/** An archive of Debian packages for tests, served over HTTP on the loopback. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { leftOut } from "../../needed.ts";

const PATH = process.env.PATH ?? "";

function missing(): string | undefined {
  const tools = ["apt-get", "dpkg-deb"];
  const absent = tools.filter(
    (tool) => !PATH.split(delimiter).some((folder) => existsSync(join(folder, tool))),
  );
  return absent.length === 0 ? undefined : `this machine has no ${absent.join(" and no ")}`;
}

/** What to add to the names of tests that need apt; empty where it is. */
export const skipped = leftOut(missing());

interface PackageOptions {
  readonly version?: string;
  readonly depends?: string;
  /** By path; a function makes the entry itself. */
  readonly files?: Readonly<Record<string, string | ((path: string) => void)>>;
  /** The `data.tar` instead of the files. */
  readonly data?: Buffer;
}

export class Archive implements AsyncDisposable {
  readonly #folder = realpathSync(mkdtempSync(join(tmpdir(), "tessera-archive-")));
  /** A file that the script of any package would make. */
  readonly scriptMark = join(this.#folder, "a-script-ran");
  readonly #stanzas = new Map<string, string>();
  readonly #server: Server;
  /** The paths of the packages that were asked for. */
  readonly served: string[] = [];

  private constructor() {
    this.#server = createServer((req, res) => {
      const path = decodeURIComponent(req.url ?? "");
      const file = join(this.#folder, path);
      if (path.endsWith(".deb")) {
        this.served.push(path);
      }
      const found = existsSync(file) && !path.endsWith("/");
      res.writeHead(found ? 200 : 404);
      res.end(found ? readFileSync(file) : "");
    });
  }

  static async open(): Promise<Archive> {
    const archive = new Archive();
    archive.#server.listen(0, "127.0.0.1");
    await once(archive.#server, "listening");
    for (const name of ["dash", "coreutils", "sed", "grep", "libc6"]) {
      archive.add(name, { depends: name === "libc6" ? "" : "libc6" });
    }
    return archive;
  }

  /** The settings of apt for this archive alone. */
  get settings(): string {
    const { port } = this.#server.address() as AddressInfo;
    const list = join(this.#folder, "sources.list");
    writeFileSync(list, `deb [trusted=yes] http://127.0.0.1:${port}/ ./\n`);
    return [
      `Dir::Etc::sourcelist "${list}";`,
      'Dir::Etc::sourceparts "/dev/null";',
      'Acquire::http::Proxy "DIRECT";',
      'Acquire::Retries "0";',
    ].join("\n");
  }

  /** Adds a package, or replaces its only version. */
  add(
    name: string,
    { version = "1.0", depends = "", files = {}, data }: PackageOptions = {},
  ): void {
    const home = mkdtempSync(join(this.#folder, "build-"));
    const stanza = [
      ...[`Package: ${name}`, `Version: ${version}`, "Architecture: all"],
      ...["Maintainer: Test <test@example.com>", "Description: for a test"],
      ...(depends === "" ? [] : [`Depends: ${depends}`]),
    ].join("\n");
    mkdirSync(join(home, "DEBIAN"));
    writeFileSync(join(home, "DEBIAN/control"), `${stanza}\n`);
    writeFileSync(join(home, "DEBIAN/postinst"), `#!/bin/sh\ntouch ${this.scriptMark}\n`, {
      mode: 0o755,
    });
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(home, path)), { recursive: true });
      if (typeof content === "string") {
        writeFileSync(join(home, path), content);
      } else {
        content(join(home, path));
      }
    }
    const file = `${name}_${version}_all.deb`;
    for (const old of readdirSync(this.#folder)) {
      if (old.startsWith(`${name}_`)) {
        rmSync(join(this.#folder, old));
      }
    }
    const path = join(this.#folder, file);
    execFileSync("dpkg-deb", ["--build", "--root-owner-group", home, path], { stdio: "ignore" });
    if (data !== undefined) {
      writeFileSync(path, withData(readFileSync(path), data));
    }
    rmSync(home, { recursive: true });
    const bytes = readFileSync(path);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    this.#stanzas.set(
      name,
      `${stanza}\nFilename: ./${file}\nSize: ${bytes.length}\nSHA256: ${sha256}\n`,
    );
    writeFileSync(join(this.#folder, "Packages"), [...this.#stanzas.values()].join("\n"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
    rmSync(this.#folder, { recursive: true });
  }
}

/** A package (`ar`, deb(5)) with other data. */
function withData(deb: Buffer, data: Buffer): Buffer {
  const HEAD_BYTES = 60;
  let [at, kept] = [8, deb.subarray(0, 8)];
  while (at < deb.length) {
    const head = deb.subarray(at, at + HEAD_BYTES);
    const size = Number(head.subarray(48, 58).toString());
    const next = at + HEAD_BYTES + size + (size % 2);
    if (!head.toString().startsWith("data.tar")) {
      kept = Buffer.concat([kept, deb.subarray(at, next)]);
    }
    at = next;
  }
  const head = `${"data.tar".padEnd(16)}${"0".padEnd(12)}${"0".padEnd(6)}${"0".padEnd(6)}${"100644".padEnd(8)}${String(data.length).padEnd(10)}\`\n`;
  return Buffer.concat([kept, Buffer.from(head), data, Buffer.alloc(data.length % 2)]);
}
