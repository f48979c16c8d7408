/** The environments of `npm start -- --examples all`, with packages of a local folder. */
import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { environment } from "../../../scripts/start-environment.ts";
import { leftOut } from "../../needed.ts";
import { pythonMissing, run } from "../clients/python-environment.ts";

const skipped = leftOut(pythonMissing);
const ANY = { oldest: 10, newest: 99 };

/** Writes a wheel with one module, of a name and a version, into a folder. */
const WHEEL = `
import sys, zipfile
folder, name, version = sys.argv[1:]
info = f"{name}-{version}.dist-info"
with zipfile.ZipFile(f"{folder}/{name}-{version}-py3-none-any.whl", "w") as wheel:
    wheel.writestr(f"{name}.py", "")
    wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(f"{info}/RECORD", "")
`;

describe.skipIf(skipped)(`the environment of an example${skipped}`, () => {
  let folder: string;
  let env: NodeJS.ProcessEnv;
  let told: string[];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "tessera-environment-"));
    env = { ...process.env, PIP_NO_INDEX: "1", PIP_FIND_LINKS: folder };
    told = [];
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  function make(packages: string, options: Partial<Parameters<typeof environment>[0]> = {}) {
    const requirements = join(folder, "requirements.txt");
    writeFileSync(requirements, packages);
    return environment({
      requirements,
      versions: ANY,
      folder: join(folder, "venv"),
      onProgress: (text) => told.push(text),
      signal: AbortSignal.timeout(60_000),
      env,
      ...options,
    });
  }

  it("is made with progress, found again, and made anew when it is broken or asked for more", async () => {
    await run("python3", ["-c", WHEEL, folder, "lamp", "1.0"]);
    await run("python3", ["-c", WHEEL, folder, "wick", "2.0"]);
    const python = await make("# all\nlamp==1.0\n");
    await run(python, ["-c", "import lamp"]);
    expect(told).toEqual([
      expect.stringMatching(/^making an environment with Python 3\.\d+$/),
      "1/1 lamp-1.0-py3-none-any.whl",
      "installing",
    ]);

    told = [];
    expect(await make("# all\nlamp==1.0\n")).toBe(python);
    expect(told).toEqual([]);

    const made = statSync(join(folder, "venv/complete")).mtimeMs;
    rmSync(join(folder, "venv/complete"));
    await make("# all\nlamp==1.0\n");
    expect(statSync(join(folder, "venv/complete")).mtimeMs).toBeGreaterThan(made);

    told = [];
    await make("lamp==1.0\nwick==2.0\n");
    await run(python, ["-c", "import lamp, wick"]);
    expect(told).toContain("2/2 wick-2.0-py3-none-any.whl");
  });

  it("is refused with the last line of pip", async () => {
    await expect(make("lamp==9.9\n")).rejects.toThrow(
      /^pip failed: ERROR: No matching distribution found for lamp==9\.9$/,
    );
    // What was begun counts for nothing.
    await run("python3", ["-c", WHEEL, folder, "lamp", "9.9"]);
    await make("lamp==9.9\n");
    expect(told.filter((text) => text.startsWith("making"))).toHaveLength(2);
  });

  it("is refused without a network, which is said in these words", async () => {
    const offline = { PIP_NO_INDEX: "0", PIP_INDEX_URL: "http://127.0.0.1:9/simple" };
    await expect(
      make("lamp==1.0\n", { env: { ...env, ...offline, PIP_FIND_LINKS: "", no_proxy: "*" } }),
    ).rejects.toThrow("no network: pip cannot reach the index of packages");
  });

  it("is refused without a Python that fits", async () => {
    const bin = join(folder, "bin");
    mkdirSync(bin);
    await expect(make("", { env: { ...env, PATH: bin } })).rejects.toThrow(
      "there is no python3; it needs Python 3.10 to 3.99",
    );
    const found = (await run("python3", ["-c", "import sys; print(sys.executable)"])).trim();
    symlinkSync(found, join(bin, "python3"));
    const old = { versions: { oldest: 98, newest: 99 }, env: { ...env, PATH: bin + delimiter } };
    await expect(make("", old)).rejects.toThrow(
      /^python3 is 3\.\d+; it needs Python 3\.98 to 3\.99$/,
    );
  });

  it("ends at once when the start is stopped", async () => {
    const signal = AbortSignal.abort(new Error("stopped"));
    await expect(make("lamp==1.0\n", { signal })).rejects.toThrow("stopped");
  });
});
