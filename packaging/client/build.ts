/**
 * Builds the npm package of the client alone: `node packaging/client/build.ts [--output FOLDER]`.
 *
 *   tessera-platform-client-<version>.tgz
 *     dist/, gen/      what `tessera-platform/client` reaches of them, under the same paths
 *     gen/buf/         the rules of protovalidate as a description, without its evaluator
 *     package.json     the version, and of the packages that the code imports the ranges, of
 *                      the package `tessera-platform`
 *     README.md, LICENSE
 *
 * The same sources give the same bytes.
 */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, posix, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { declarationsOf } from "../../scripts/declarations.ts";
import { ROOT } from "../program.ts";
import { run } from "../run.ts";

const ENTRIES = ["dist/client/index.js", "dist/client/browser.js"];
const TYPES = ["dist/client/index.d.ts"];

/**
 * The one module that the code takes of protovalidate. The package has it as a file of its own:
 * protovalidate brings an evaluator of 8 MB, which runs in the server.
 */
const RULES = "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
const RULES_FILE = "gen/buf/validate/validate_pb.js";

interface Manifest {
  readonly version: string;
  readonly license: string;
  readonly type: string;
  readonly engines: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, unknown>>;
  readonly publishConfig: unknown;
  readonly dependencies: Readonly<Record<string, string>>;
}

/** What the client is made of: files of the project, and packages. */
interface Reached {
  readonly files: readonly string[];
  readonly packages: readonly string[];
}

/** Builds the package into `output`; returns its path. Needs `dist/` (npm run build). */
export async function buildClient(output: string): Promise<string> {
  if (!existsSync(join(ROOT, "dist/main.js"))) {
    throw new Error("dist/ is not built: run npm run build first");
  }
  const { files, packages } = await reached();
  const scratch = mkdtempSync(join(tmpdir(), "tessera-client-"));
  try {
    for (const file of files) {
      const target = join(scratch, file);
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, withOwnRules(file, readFileSync(join(ROOT, file), "utf8")));
    }
    mkdirSync(join(scratch, dirname(RULES_FILE)), { recursive: true });
    copyFileSync(fileURLToPath(import.meta.resolve(RULES)), join(scratch, RULES_FILE));
    writeFileSync(join(scratch, "package.json"), manifest(packages));
    copyFileSync(join(import.meta.dirname, "README.md"), join(scratch, "README.md"));
    copyFileSync(join(ROOT, "LICENSE"), join(scratch, "LICENSE"));
    run("chmod", ["-R", "u=rwX,go=rX", scratch]);
    mkdirSync(output, { recursive: true });
    const pack = ["pack", "--json", "--pack-destination", resolve(output)];
    const [{ filename }] = JSON.parse(run("npm", pack, { cwd: scratch })) as [{ filename: string }];
    return join(resolve(output), filename);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** The modules that the entries import, with their types and what those import. */
async function reached(): Promise<Reached> {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ENTRIES,
    bundle: true,
    packages: "external",
    platform: "node",
    format: "esm",
    outdir: "out",
    write: false,
    metafile: true,
  });
  const imported = Object.values(metafile.inputs).flatMap(({ imports }) => imports);
  const outside = imported.flatMap(({ path, external }) => (external === true ? [path] : []));
  const types = declarationsOf(TYPES.map((file) => join(ROOT, file)));
  const files = [...types.files].map((file) => relative(ROOT, file));
  const packages = [...outside, ...types.outside]
    .filter((specifier) => specifier !== RULES && !isBuiltin(specifier))
    .map((specifier) => /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? specifier);
  return {
    files: [...Object.keys(metafile.inputs), ...files].sort(),
    packages: [...new Set(packages)].sort(),
  };
}

function withOwnRules(file: string, text: string): string {
  const path = posix.relative(posix.dirname(file), RULES_FILE);
  return text.replace(`from "${RULES}"`, `from "${path}"`);
}

function manifest(packages: readonly string[]): string {
  const own = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Manifest;
  const dependencies = packages.map((name) => {
    const range = own.dependencies[name];
    if (range === undefined) {
      throw new Error(`src/client imports ${name}, which package.json does not depend on`);
    }
    return [name, range] as const;
  });
  const { version, license, type, engines, exports, publishConfig } = own;
  const written = {
    name: "tessera-platform-client",
    version,
    description: "The client of Tessera for Node and browsers: calls, tasks and streams.",
    license,
    keywords: ["client", "grpc", "http", "queue", "tasks", "tessera"],
    type,
    engines,
    exports: { ".": exports["./client"], "./package.json": "./package.json" },
    files: ["dist", "gen"],
    sideEffects: false,
    publishConfig,
    dependencies: Object.fromEntries(dependencies),
  };
  return `${JSON.stringify(written, null, 2)}\n`;
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { output: { type: "string", default: join(ROOT, "packaging/out") } },
  });
  process.stdout.write(`${await buildClient(values.output)}\n`);
}
