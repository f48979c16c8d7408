/** An index of packages on loopback (PEP 691), with wheels and source archives that a test makes. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export interface MadePackage {
  readonly name: string;
  /** The file name of its wheel. */
  readonly file: string;
  readonly bytes: Buffer;
  readonly sha256: string;
}

/** The line of a lock for a package. */
export function lockLine({ name, file, sha256 }: MadePackage): string {
  return `${name}==${file.split("-")[1]?.replace(".tar.gz", "")} --hash=sha256:${sha256}\n`;
}

const WRITE_WHEEL = `
import json, stat, sys, zipfile
made, target = json.load(sys.stdin), sys.argv[1]
with zipfile.ZipFile(target, "w") as archive:
    for path, text in made["content"].items():
        entry = zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0))
        more = made["metadataMb"] if path.endswith("/METADATA") else 0
        entry.compress_type = zipfile.ZIP_DEFLATED if more or len(text) > 1_000_000 else zipfile.ZIP_STORED
        with archive.open(entry, "w") as opened:
            opened.write(text.encode())
            for _ in range(more):
                opened.write(b"X: y\\n" * 200_000)
    for path, to in made["links"].items():
        link = zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0))
        link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, to)
`;

/** A build backend (PEP 517) of a pure package of one module. */
const BUILD_BACKEND = `
import os, zipfile
name, version = "NAME", "VERSION"
def get_requires_for_build_wheel(config_settings=None):
    return []
def build_wheel(directory, config_settings=None, metadata_directory=None):
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}/__init__.py": open("code.txt").read(),
        f"{info}/METADATA": f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\\n" for path in [*files, f"{info}/RECORD"])
    file = f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, file), "w") as archive:
        for path, text in files.items():
            archive.writestr(zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0)), text)
    return file
`;

export class PackageIndex implements AsyncDisposable {
  /** The number of files that were fetched. */
  fetched = 0;
  /** Answers wait for it. */
  held: Promise<void> = Promise.resolve();
  readonly #server: Server;
  readonly #folder = mkdtempSync(join(tmpdir(), "tessera-index-"));
  readonly #packages = new Map<string, MadePackage[]>();

  private constructor() {
    this.#server = createServer((request, response) => {
      void this.held.then(() => {
        const [, root, name = ""] = (request.url ?? "").split("/");
        if (root === "simple") {
          this.#list(decodeURIComponent(name), response);
          return;
        }
        const found = [...this.#packages.values()].flat().find(({ file }) => file === name);
        this.fetched += 1;
        response.statusCode = found === undefined ? 404 : 200;
        response.end(found?.bytes);
      });
    });
  }

  static async start(): Promise<PackageIndex> {
    const index = new PackageIndex();
    index.#server.listen(0, "127.0.0.1");
    await once(index.#server, "listening");
    return index;
  }

  /** The newest of a package. */
  wheel(name: string): MadePackage {
    const found = this.#packages.get(name)?.at(-1);
    if (found === undefined) {
      throw new Error(`there is no package ${name}`);
    }
    return found;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/simple`;
  }

  /** Adds the wheel of a package whose module has its name. */
  add(
    name: string,
    version: string,
    {
      tag = "py3-none-any",
      requires = [] as string[],
      code = "",
      files = {},
      /** Symbolic links, by their paths. */
      links = {},
      /** Megabytes of headers that say nothing, in its METADATA. */
      metadataMb = 0,
    } = {},
  ): MadePackage {
    const info = `${name}-${version}.dist-info`;
    const content: Record<string, string> = {
      [`${name}/__init__.py`]: code,
      ...files,
      [`${info}/METADATA`]: [
        `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}`,
        ...requires.map((each) => `Requires-Dist: ${each}`),
        "",
      ].join("\n"),
      [`${info}/WHEEL`]: `Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: ${tag}\n`,
    };
    content[`${info}/RECORD`] = Object.entries(content)
      .map(([path, text]) => {
        const digest = createHash("sha256").update(text).digest("base64url");
        return `${path},sha256=${digest},${Buffer.byteLength(text)}\n`;
      })
      .concat(`${info}/RECORD,,\n`)
      .join("");
    const file = `${name}-${version}-${tag}.whl`;
    const path = join(this.#folder, file);
    execFileSync("python3", ["-c", WRITE_WHEEL, path], {
      input: JSON.stringify({ content, links, metadataMb }),
    });
    return this.#keep(name, file, readFileSync(path));
  }

  /** Adds a package that has to be built, and says so where it is. */
  addSource(
    name: string,
    version: string,
    setup: string,
    files: Readonly<Record<string, string>> = {},
  ): MadePackage {
    const root = join(this.#folder, `${name}-${version}`);
    for (const [path, text] of [
      ["setup.py", setup],
      ["PKG-INFO", `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`],
      ...Object.entries(files),
    ] as const) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    const file = `${name}-${version}.tar.gz`;
    execFileSync("tar", [
      "-czf",
      join(this.#folder, file),
      "-C",
      this.#folder,
      `${name}-${version}`,
    ]);
    return this.#keep(name, file, readFileSync(join(this.#folder, file)));
  }

  /** Adds a package that builds its wheel by code of its own, for which nothing else is needed. */
  addBuildable(name: string, version: string, code: string): MadePackage {
    return this.addSource(name, version, "", {
      "pyproject.toml":
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
      "backend.py": BUILD_BACKEND.replace("NAME", name).replace("VERSION", version),
      "code.txt": code,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #keep(name: string, file: string, bytes: Buffer): MadePackage {
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const made = { name, file, bytes, sha256 };
    this.#packages.set(name, [...(this.#packages.get(name) ?? []), made]);
    return made;
  }

  #list(name: string, response: import("node:http").ServerResponse): void {
    const packages = this.#packages.get(name.replaceAll("-", "_")) ?? this.#packages.get(name);
    if (packages === undefined) {
      response.statusCode = 404;
      response.end();
      return;
    }
    response.setHeader("content-type", "application/vnd.pypi.simple.v1+json");
    const files = packages.map(({ file, sha256 }) => ({
      filename: file,
      url: `/files/${file}`.replace("/files/", "/files/"),
      hashes: { sha256 },
    }));
    response.end(JSON.stringify({ meta: { "api-version": "1.0" }, name, files }));
  }
}
