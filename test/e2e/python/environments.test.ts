import { execFile, execFileSync } from "node:child_process";
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { systemNeeds } from "../../../src/artifacts/environments/bentoml.ts";
import type { EnvironmentSpec, Wheel } from "../../../src/artifacts/environments/environment.ts";
import { lockPackages } from "../../../src/artifacts/environments/lock.ts";
import {
  EnvironmentStore,
  type EnvironmentStoreOptions,
} from "../../../src/artifacts/environments/store.ts";
import { programLauncher } from "../../../src/pool/launchers.ts";
import { findSandbox } from "../../../src/pool/sandbox/sandbox.ts";
import { leftOut } from "../../needed.ts";
import { pythonMissing } from "../clients/python-environment.ts";
import { lockLine, type MadePackage, PackageIndex } from "./package-index.ts";
import { type Tools, tools } from "./uv.ts";

const skipped = leftOut(pythonMissing);
const NOWHERE = "http://somebody:secret@127.0.0.1:9/simple";

let found: Tools;
let index: PackageIndex;
let one: MadePackage;
let folder: string;
beforeAll(async () => {
  if (!skipped) {
    found = await tools();
    index = await PackageIndex.start();
    one = index.add("one", "1.0", { code: "VALUE = 41\n" });
  }
}, 300_000);
afterAll(() => index?.[Symbol.asyncDispose]());
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "tessera-environments-")));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A wheel that an artifact brings. */
function wheelOf({ file, bytes, sha256 }: MadePackage, name = file): Wheel {
  return { name, sha256: [sha256], open: () => Readable.from([bytes]) };
}

/** This machine, as tags of wheels name it. */
function machine(): string {
  return process.arch === "arm64" ? "aarch64" : "x86_64";
}

describe.skipIf(skipped)(`environments${skipped}`, () => {
  let made: number;
  const open = async (options: Partial<EnvironmentStoreOptions> = {}) => {
    const store = new EnvironmentStore({
      folder,
      interpreters: async () => [found.interpreter],
      uv: async () => found.uv,
      env: { UV_DEFAULT_INDEX: index.url, UV_HTTP_RETRIES: "0" },
      launch: programLauncher(await findSandbox("auto", process.env.PATH ?? "")),
      maxBytesPerOrganization: 1024 ** 3,
      log: { info: () => (made += 1), warn() {} },
      now: Date.now,
      ...options,
    });
    await store.start();
    return store;
  };
  const spec = (lock = lockLine(one)): EnvironmentSpec => ({
    lock,
    python: found.interpreter.version,
    organizationId: "acme",
  });
  const value = (python: string): string =>
    execFileSync(python, ["-c", "import one; print(one.VALUE)"], { encoding: "utf8" }).trim();
  const folders = (): string[] => readdirSync(folder).filter((name) => /^[0-9a-f]{64}/.test(name));
  beforeEach(() => {
    made = 0;
  });

  it("are made once for all who ask for the same at once, with compiled packages", async () => {
    const store = await open();
    const all = await Promise.all(Array.from({ length: 50 }, () => store.hold(spec())));
    expect(new Set(all.map(({ python }) => python)).size).toBe(1);
    expect(made).toBe(1);
    const [{ python = "", files = [] } = {}] = all;
    expect(value(python)).toBe("41");
    const [own = ""] = files;
    const packages = join(own, "lib", `python${found.interpreter.version}`, "site-packages");
    expect(readdirSync(join(packages, "one/__pycache__"))).toHaveLength(1);
  });

  it("stay while somebody holds them, and are swept when nobody has for a while", async () => {
    let nowMs = Date.now();
    const store = await open({ now: () => nowMs });
    const first = await store.hold(spec());
    const second = await store.hold(spec());
    first.release();
    first.release();
    nowMs += 10_000;
    expect(await store.sweep({ unusedForMs: 5_000 })).toBe(0);
    second.release();
    expect(await store.sweep({ unusedForMs: 60_000 })).toBe(0);
    expect(await store.sweep({ unusedForMs: 5_000 })).toBe(1);
    expect(folders()).toEqual([]);
    expect(value((await store.hold(spec())).python)).toBe("41");
  });

  it("that nobody uses take no more disk than one organization may have, nor does the cache", async () => {
    const big = (name: string) =>
      lockLine(index.add(name, "1.0", { files: { [`${name}/data.txt`]: "x".repeat(3_000_000) } }));
    const store = await open({ maxBytesPerOrganization: 8 * 1024 ** 2 });
    for (const name of ["first", "second", "third"]) {
      (await store.hold(spec(big(name)))).release();
    }
    expect(folders()).toHaveLength(3);
    const cached = (): number => readdirSync(join(folder, "cache"), { recursive: true }).length;
    const before = cached();
    const held = await store.hold(spec());
    // The one that was used first has gone.
    expect(folders()).toHaveLength(3);
    expect(value(held.python)).toBe("41");
    expect(cached()).toBeLessThan(before);
  });

  it("of an earlier life are used when they are whole, and made again when they are not", async () => {
    const held = await (await open()).hold(spec());
    const [path = ""] = held.files;
    const abort = new AbortController();
    const again = await (await open()).hold(spec(), { signal: abort.signal });
    abort.abort();
    await again.verify();
    expect(made).toBe(1);
    const module = join(path, "lib", `python${found.interpreter.version}`, "site-packages/one");
    // A new file, because the old one is shared with the cache.
    rmSync(join(module, "__init__.py"));
    writeFileSync(join(module, "__init__.py"), "VALUE = 'evil'\n");
    const damaged = await (await open()).hold(spec());
    await expect(damaged.verify()).rejects.toThrow("damaged, and has been made again");
    expect(made).toBe(2);
    await damaged.verify();
    expect(value(damaged.python)).toBe("41");
  });

  it("that were left unfinished are removed at the next start", async () => {
    await mkdir(join(folder, `${"a".repeat(64)}.x.partial`));
    await open();
    expect(folders()).toEqual([]);
  });

  it("are made of the packages that an artifact brings, without any index", async () => {
    const store = await open({ env: { UV_DEFAULT_INDEX: NOWHERE, UV_HTTP_RETRIES: "0" } });
    const wheels = [wheelOf(one)];
    const held = await store.hold({ ...spec(), wheels });
    expect(value(held.python)).toBe("41");
    await expect(
      store.hold({
        ...spec(),
        python: found.interpreter.version,
        lock: `two==1 --hash=sha256:${one.sha256}`,
        wheels,
      }),
    ).rejects.toThrow("two");
  });

  it("are others for others who bring other wheels for the same lock", async () => {
    const store = await open();
    const right = index.add("same", "1.0", { code: "VALUE = 1\n" });
    const other = index.add("same", "1.0", { tag: "py2.py3-none-any", code: "VALUE = 2\n" });
    const lock = `same==1.0 --hash=sha256:${right.sha256} --hash=sha256:${other.sha256}\n`;
    const bringing = (...wheels: Wheel[]) => store.hold({ ...spec(lock), wheels });
    const all = await Promise.all([
      store.hold(spec(lock)),
      bringing(wheelOf(right)),
      bringing(wheelOf(other)),
      bringing(wheelOf(other, right.file)),
      bringing(wheelOf(right), wheelOf(other)),
    ]);
    expect(new Set(all.map(({ python }) => python)).size).toBe(5);
    const again = await bringing(wheelOf(other), wheelOf(right));
    expect(again.python).toBe(all.at(-1)?.python);
  });

  it.each([
    ["another platform", "py3-none-win_amd64", "py3-none-any"],
    ["another version of Python", "py2-none-any", "py3-none-any"],
    ["another system", "py3-none-macosx_11_0_arm64", `py3-none-manylinux2014_${machine()}`],
  ])("are not made of a wheel for %s whose name lies", async (_, tag, named) => {
    const store = await open();
    const name = `liar${tag.replaceAll(/\W/g, "")}`;
    const lying = index.add(name, "1.0", { tag });
    const wheels = [wheelOf(lying, `${name}-1.0-${named}.whl`)];
    const refused = store.hold({ ...spec(lockLine(lying)), wheels });
    await expect(refused).rejects.toMatchObject({
      reason: "LOCK_INVALID",
      isFinal: true,
      message: expect.stringContaining(`is for ${tag} by the file WHEEL in it`),
    });
    expect(folders()).toEqual([]);
  });

  it("are made of a wheel that was renamed for older systems like its own", async () => {
    const store = await open();
    const built = index.add("repaired", "1.0", { tag: `py3-none-linux_${machine()}` });
    const name = `repaired-1.0-py3-none-manylinux_2_17_${machine()}.manylinux2014_${machine()}.whl`;
    await store.hold({ ...spec(lockLine(built)), wheels: [wheelOf(built, name)] });
    expect(made).toBe(1);
  });

  it("are given up when nobody waits any more, and made for who comes next", async () => {
    const store = await open();
    const other = index.add("slow", "1.0");
    const gate = Promise.withResolvers<void>();
    index.held = gate.promise;
    const abort = new AbortController();
    const gone = store.hold(spec(lockLine(other)), { signal: abort.signal });
    abort.abort(new Error("somebody left"));
    await expect(gone).rejects.toThrow("somebody left");
    gate.resolve();
    index.held = Promise.resolve();
    await store.hold(spec(lockLine(other)));
    expect(made).toBe(1);
  });

  const refused = (lock: () => string, options?: () => Partial<EnvironmentStoreOptions>) =>
    open(options?.()).then(async (store) => {
      const err = await store.hold(spec(lock())).then(
        () => undefined,
        (err: unknown) => err,
      );
      expect(folders()).toEqual([]);
      return err as Error & { readonly reason: string };
    });

  it("are refused with a package of another digest", async () => {
    const err = await refused(() => `one==1.0 --hash=sha256:${"0".repeat(64)}\n`);
    expect(err.reason).toBe("LOCK_INVALID");
    expect(err.message).toMatch(
      /another one than its lock names[\s\S]*Hash mismatch for `one==1.0`/,
    );
  });

  it("are refused with a package for other platforms", async () => {
    const err = await refused(() =>
      lockLine(index.add("foreign", "1.0", { tag: "py3-none-win_amd64" })),
    );
    expect(err.reason).toBe("ENVIRONMENT_UNAVAILABLE");
    expect(err.message).toMatch(/no wheel for this platform[\s\S]*foreign[\s\S]*win_amd64/);
  });

  it("are refused with a package that has to be built, none of whose code runs", async () => {
    const mark = join(folder, "ran");
    const source = index.addSource("built", "1.0", `open(${JSON.stringify(mark)}, "w")\n`);
    const err = await refused(() => lockLine(source));
    expect(err.reason).toBe("ENVIRONMENT_UNAVAILABLE");
    expect(err.message).toMatch(/not built from source[\s\S]*built/);
    expect(readdirSync(folder)).not.toContain("ran");
  });

  it("are refused when no index is reached, without its password", async () => {
    const err = await refused(
      () => lockLine(one),
      () => ({ env: { UV_DEFAULT_INDEX: NOWHERE, UV_HTTP_RETRIES: "0" } }),
    );
    expect(err.reason).toBe("ENVIRONMENT_UNAVAILABLE");
    expect(err.message).toContain("the package index cannot be reached");
    expect(err.message).not.toContain("secret");
  });

  it("are refused when they take more disk than their organization has left", async () => {
    const big = index.add("big", "1.0", { files: { "big/data.txt": "x".repeat(5_000_000) } });
    const err = await refused(
      () => lockLine(big),
      () => ({ maxBytesPerOrganization: 4 * 1024 ** 2 }),
    );
    expect(err.reason).toBe("ENVIRONMENT_UNAVAILABLE");
    expect(err.message).toContain("more than the 4 MiB of disk");
  });

  it("are made for who has room for them, though somebody without asked first", async () => {
    const data = (name: string) =>
      index.add(name, "1.0", { files: { [`${name}/data.txt`]: "x".repeat(3_000_000) } });
    const store = await open({ maxBytesPerOrganization: 5 * 1024 ** 2 });
    await store.hold(spec(lockLine(data("had"))));
    const lock = lockLine(data("wanted"));
    const gate = Promise.withResolvers<void>();
    index.held = gate.promise;
    const all = Promise.allSettled([
      store.hold(spec(lock)),
      store.hold({ ...spec(lock), organizationId: "other" }),
      store.hold({ ...spec(lock), organizationId: "another" }),
    ]);
    gate.resolve();
    index.held = Promise.resolve();
    const [refused, ...others] = await all;
    expect(refused).toMatchObject({ status: "rejected", reason: { isFinal: false } });
    expect(others.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
    expect(made).toBe(2);
  });

  it("leave nothing large in the cache when their packages cannot be installed", async () => {
    const store = await open({ maxBytesPerOrganization: 64 * 1024 ** 2 });
    const files = {
      "broken/data.txt": "x".repeat(20_000_000),
      "broken-1.0.data/scripts/python": "#!/bin/sh\n",
    };
    const refused = store.hold(spec(lockLine(index.add("broken", "1.0", { files }))));
    await expect(refused).rejects.toThrow("reserved name");
    const cached = readdirSync(join(folder, "cache"), { recursive: true, encoding: "utf8" });
    expect(cached.filter((path) => path.endsWith("data.txt"))).toEqual([]);
  });

  it("are refused for a version of Python that is not there, with those that are", async () => {
    const store = await open();
    await expect(store.hold({ ...spec(), python: "3.99" })).rejects.toThrow(
      `it needs Python 3.99, and this machine has ${found.interpreter.version}`,
    );
  });
});

describe.skipIf(skipped)(`the lock of a service's packages${skipped}`, () => {
  const write = (files: Readonly<Record<string, string>>): void => {
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(folder, name), text);
    }
  };
  const lock = () =>
    lockPackages({
      folder,
      entry: "service.py",
      fromSource: [],
      interpreter: found.interpreter,
      uv: found.uv,
      cacheFolder: join(folder, "cache"),
      env: { UV_DEFAULT_INDEX: index.url, UV_HTTP_RETRIES: "0" },
    });
  let pydantic: MadePackage;
  beforeAll(() => {
    if (!skipped) {
      pydantic = index.add("pydantic", "2.5.0", { requires: ["core"] });
      index.add("core", "1.0");
      index.add("one", "2.0");
      index.add("wants", "1.0", { requires: ["unwanted", "one<2"] });
      index.add("unwanted", "1.0");
      index.add("later", "1.0", { requires: ["one>=2; python_version >= '3.99'"] });
      index.add("partly", "1.0");
      index.add("partly", "2.0", { tag: "py3-none-win_amd64" });
      index.add("bentoml", "1.4.0");
    }
  });
  const names = (text: string): string[] =>
    [...text.matchAll(/^[\w-]+==[\w.]+/gm)].map(([it]) => it);

  it("has what every service needs when no file names more", async () => {
    const { text, source } = await lock();
    expect(source).toBe("no file");
    expect(names(text)).toEqual(["core==1.0", "pydantic==2.5.0"]);
    expect(text).toMatch(new RegExp(`^pydantic==2.5.0 .*--hash=sha256:${pydantic.sha256}$`, "m"));
    expect((await lock()).text).toBe(text);
  });

  it("is resolved from requirements, without the package of the platform itself", async () => {
    write({ "requirements.txt": "one\ntessera-platform>=0.1  # the node brings it\n" });
    expect(names((await lock()).text)).toEqual(["core==1.0", "one==2.0", "pydantic==2.5.0"]);
  });

  it("is resolved from a project, with its overrides, rather than from requirements", async () => {
    write({
      "requirements.txt": "one\n",
      "pyproject.toml":
        '[project]\nname = "it"\nversion = "1"\ndependencies = ["wants"]\n[tool.uv]\nexclude-dependencies = ["unwanted"]\n',
    });
    const { text, source } = await lock();
    expect(source).toBe("pyproject.toml");
    expect(names(text)).toEqual(["core==1.0", "one==1.0", "pydantic==2.5.0", "wants==1.0"]);
  });

  it("is the requirements themselves when they have hashes", async () => {
    const hashed = `${lockLine(one)}${lockLine(pydantic)}`;
    write({
      "requirements.txt": hashed,
      "pyproject.toml": '[project]\nname = "it"\nversion = "1"\n',
    });
    expect((await lock()).text).toBe(hashed);
    write({ "requirements.txt": lockLine(one) });
    await expect(lock()).rejects.toThrow("requirements.txt lacks pydantic");
  });

  it("is for one version of Python, and for releases with a wheel for this machine", async () => {
    write({ "requirements.txt": "later\none<2\npartly\n" });
    expect(names((await lock()).text)).toEqual([
      ...["core==1.0", "later==1.0", "one==1.0", "partly==1.0", "pydantic==2.5.0"],
    ]);
  });

  it("is resolved from BentoML's file", async () => {
    write({ "bentofile.yaml": "service: 'service:It'\npython:\n  packages:\n    - one<2\n" });
    const { text, source } = await lock();
    expect(source).toBe("bentofile.yaml");
    expect(names(text)).toEqual(["bentoml==1.4.0", "core==1.0", "one==1.0", "pydantic==2.5.0"]);
    write({ "bentofile.yaml": "python:\n  requirements_txt: ./more.txt\n", "more.txt": "one\n" });
    expect(names((await lock()).text)).toContain("one==2.0");
    write({ "bentofile.yaml": "python:\n  packages: one\n" });
    await expect(lock()).rejects.toThrow("python.packages in bentofile.yaml is no list");
    write({ "bentofile.yaml": "python: [\n" });
    await expect(lock()).rejects.toThrow("bentofile.yaml is no YAML");
  });

  it("is resolved from BentoML's image, whose module does not run for it", async () => {
    const image = (calls: string): void =>
      write({
        "service.py": `import bentoml, not_there\nMORE = ["unwanted", "wants"]\nopen("ran", "w")\nimage = bentoml.images.Image(python_version="3.11")${calls}\n`,
        "more.txt": "one<2\n",
      });
    image('.python_packages("one", *MORE).requirements_file("more.txt").run("true")');
    const { text, source } = await lock();
    expect(source).toBe("the image in service.py");
    expect(names(text)).toEqual([
      ...["bentoml==1.4.0", "core==1.0", "one==1.0", "pydantic==2.5.0"],
      ...["unwanted==1.0", "wants==1.0"],
    ]);
    image(".python_packages(*read())");
    await expect(lock()).rejects.toThrow(/service.py, line 4: python_packages takes more than/);
    expect(readdirSync(folder)).not.toContain("ran");
  });

  it("leaves system packages of BentoML's image and file to those who lock these", async () => {
    const image = (calls: string): void =>
      write({
        "service.py": `import bentoml\nTOOLS = ["ffmpeg"]\nimage = bentoml.images.Image()${calls}\n`,
        "bentofile.yaml": "docker:\n  system_packages: [git]\n",
        "requirements.txt": "one\n",
      });
    const system = () => systemNeeds(folder, "service.py", found.interpreter);
    image('.python_packages(*read()).system_packages("libgl1", *TOOLS)');
    expect(await system()).toMatchObject({ packages: ["libgl1", "ffmpeg", "git"] });
    expect((await lock()).source).toBe("requirements.txt");
    image(".system_packages(*read())");
    await expect(system()).rejects.toThrow(
      /line 3: system_packages takes more .* name the packages in tessera.yaml/,
    );
    write({ "service.py": "", "bentofile.yaml": "docker:\n  system_packages: git\n" });
    await expect(system()).rejects.toThrow("docker.system_packages in bentofile.yaml is no list");
  });

  it("takes the models of BentoML's file for those of the service", async () => {
    const modelsOf = async (models: string) => {
      write({ "service.py": "", "bentofile.yaml": `service: service:Reader\n${models}` });
      return (await systemNeeds(folder, "service.py", found.interpreter)).models;
    };
    expect(await modelsOf("")).toEqual({});
    const listed = "models: [reader.v:latest, { tag: other, alias: mine }]";
    expect(await modelsOf(listed)).toEqual({
      "reader-v": "bentoml://reader.v:latest",
      other: "bentoml://other",
    });
    for (const wrong of ["models: reader", "models: [1]", "models: [../x]", "models: [null]"]) {
      await expect(modelsOf(wrong)).rejects.toThrow(
        "models in bentofile.yaml is no list of models",
      );
    }
  });

  it("takes the base image of BentoML's image, or of its file, for the image of the service", async () => {
    const system = () => systemNeeds(folder, "service.py", found.interpreter);
    const head = 'import bentoml\nBASE = "debian:12"\n';
    write({ "service.py": `${head}image = bentoml.images.Image(base_image=BASE)\n` });
    expect(await system()).toMatchObject({ packages: [], image: "debian:12" });
    write({
      "service.py": `${head}from bentoml.images import Image\nimage = Image("debian:13")\n`,
    });
    expect(await system()).toMatchObject({ packages: [], image: "debian:13" });
    write({
      "service.py": `${head}from bentoml.images import Image as Base\nimport pictures\npictures.Image("a.png")\nfrom pictures import Image\nImage("b.png")\nimage = Base("debian:11")\n`,
    });
    expect(await system()).toMatchObject({ packages: [], image: "debian:11" });
    write({ "service.py": `${head}image = bentoml.images.Image(base_image=read())\n` });
    await expect(system()).rejects.toThrow(
      /line 3: base_image takes more .* name image in tessera.yaml/,
    );
    write({ "service.py": "", "bentofile.yaml": "docker:\n  base_image: debian:12\n" });
    expect(await system()).toMatchObject({ packages: [], image: "debian:12" });
    write({ "bentofile.yaml": "docker:\n  base_image: [a]\n" });
    await expect(system()).rejects.toThrow("docker.base_image in bentofile.yaml is no image");
  });

  it("is the releases of uv.lock", async () => {
    write({
      "pyproject.toml":
        '[project]\nname = "it"\nversion = "1"\nrequires-python = ">=3.10"\ndependencies = ["one<2", "pydantic"]\n',
    });
    await promisify(execFile)(
      found.uv,
      ["lock", "--quiet", "--no-config", "--python", found.interpreter.path],
      {
        cwd: folder,
        env: {
          UV_DEFAULT_INDEX: index.url,
          UV_CACHE_DIR: join(folder, "cache"),
          PATH: process.env.PATH,
        },
      },
    );
    expect(readFileSync(join(folder, "uv.lock"), "utf8")).toContain("one");
    const { text, source } = await lock();
    expect(source).toBe("uv.lock");
    expect(names(text)).toEqual(["core==1.0", "one==1.0", "pydantic==2.5.0"]);
  });

  it("says which requirements contradict each other", async () => {
    write({ "requirements.txt": "wants\none>=2\n" });
    await expect(lock()).rejects.toThrow(/cannot be resolved:[\s\S]*one/);
    write({ "requirements.txt": "missing-package\n" });
    await expect(lock()).rejects.toThrow(/missing-package/);
  });
});
