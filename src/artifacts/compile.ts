/**
 * The compiler of artifacts: the modules of a service and its pure JavaScript
 * packages become one module, `service.js`, with a source map beside it. Packages
 * that have to stay files are imported from their path in the artifact.
 *
 * `import.meta` of each module of the service refers to the module's path in the
 * artifact, as if it had been copied there with the files around it: constants
 * computed at load time replace it. No path of this machine gets into the code.
 */
import { readFile } from "node:fs/promises";
import { dirname, extname, join, relative, resolve, sep } from "node:path";
import { build, type Message, type Metafile, type OnResolveArgs, type Plugin } from "esbuild";
import {
  asServiceFileError,
  describe,
  isBuildFailure,
  LOADERS,
  NESTED,
  OWN_META,
  refuseDuplicates,
  refusesFormerName,
  sdkStaysOutside,
  withFirst,
} from "./bundle.ts";
import { ENTRY_NAME } from "./index-file.ts";
import { type FindPackage, staysFile } from "./packages.ts";

export const MAP_NAME = `${ENTRY_NAME}.map`;

interface CompileOptions {
  readonly servicePath: string;
  /** The folder that becomes the artifact's root. */
  readonly root: string;
  readonly findPackage: FindPackage;
  /** Folders of packages that stay files. */
  readonly external: ReadonlySet<string>;
  /** The path of a file of such a package in the artifact. */
  readonly placeOf: (file: string) => string;
}

export interface CompiledCode {
  readonly code: string;
  readonly sourceMap: string;
  /** Every compiled file. */
  readonly inputs: readonly string[];
  /** Files of external packages that are imported. */
  readonly entries: readonly string[];
  /** Folders of packages that were compiled but have to stay files. */
  readonly unfit: ReadonlySet<string>;
  /** True for an import that this compilation has resolved. */
  readonly resolved: (importer: string, specifier: string) => boolean;
  /** esbuild's warnings, one line each. */
  readonly warnings: readonly string[];
}

// CommonJS packages need `require` for external modules, such as Node's own.
const BANNER = [
  'import{createRequire as __tesseraCreateRequire}from"node:module";',
  'import{dirname as __tesseraDirnameOf,join as __tesseraJoin}from"node:path";',
  'import{pathToFileURL as __tesseraUrlOf}from"node:url";',
  "const require=__tesseraCreateRequire(import.meta.url),__tesseraRoot=import.meta.dirname;",
].join("");

/** Compiles a service. Rejects with a `ServiceFileError` that says where the fault is. */
export async function compileService(options: CompileOptions): Promise<CompiledCode> {
  const { servicePath, root, findPackage, external } = options;
  const seen = new Seen();
  try {
    const result = await build({
      entryPoints: [servicePath],
      absWorkingDir: root,
      // Never written: it makes the source map's paths relative to the root.
      outfile: join(root, ENTRY_NAME),
      write: false,
      bundle: true,
      format: "esm",
      platform: "node",
      target: "node24",
      // As Node resolves: without the "module" that bundlers add.
      conditions: [],
      sourcemap: "external",
      sourcesContent: false,
      metafile: true,
      logLevel: "silent",
      define: OWN_META,
      banner: { js: BANNER },
      plugins: [
        sdkStaysOutside,
        refusesFormerName,
        // A question for each import takes four times as long as all else: only where one can stay outside.
        ...(external.size > 0 ? [packages(options, seen)] : []),
        ownPlaces(options, seen),
      ],
    });
    await refuseDuplicates(result.warnings, root);
    const [map, code] = [".map", ".js"].map(
      (end) => result.outputFiles.find(({ path }) => path.endsWith(end))?.text ?? "",
    );
    const places = placesOf(result.metafile, root, findPackage);
    noteImports(result.metafile, root, seen);
    return {
      code: `${withPlaces(code ?? "", places)}//# sourceMappingURL=${MAP_NAME}\n`,
      sourceMap: mapWithPlaces(map ?? "", places),
      inputs: [...places.keys()].map((input) => resolve(root, input)),
      entries: [...seen.entries].toSorted(),
      unfit: seen.unfit,
      resolved: (importer, specifier) => seen.imports.has(`${importer}\n${specifier}`),
      warnings: result.warnings
        // The author cannot fix warnings about packages.
        .filter(({ location }) => !location?.file.includes("node_modules/"))
        .map(describe),
    };
  } catch (err) {
    const packages = isBuildFailure(err) ? faultyPackages(err.errors, options) : undefined;
    if (packages === undefined) {
      throw asServiceFileError(err);
    }
    return { ...NOTHING, unfit: new Set([...seen.unfit, ...packages]) };
  }
}

const NOTHING: CompiledCode = {
  code: "",
  sourceMap: "",
  inputs: [],
  entries: [],
  unfit: new Set(),
  resolved: () => false,
  warnings: [],
};

/**
 * The packages that do not compile; undefined when the fault is in the service
 * itself. Such a package may still run, if it never loads what it lacks.
 */
function faultyPackages(
  errors: readonly Message[],
  { root, findPackage }: CompileOptions,
): ReadonlySet<string> | undefined {
  const found = errors.map(
    ({ location }) => location && findPackage(resolve(root, location.file))?.root,
  );
  const packages = found.flatMap((it) => it ?? []);
  return packages.length === errors.length ? new Set(packages) : undefined;
}

/** What the plugins and the compiler have seen. */
class Seen {
  readonly imports = new Set<string>();
  readonly entries = new Set<string>();
  readonly unfit = new Set<string>();
}

function packages({ findPackage, external, placeOf }: CompileOptions, seen: Seen): Plugin {
  return {
    name: "packages",
    setup(context) {
      context.onResolve({ filter: /./ }, async (args) => {
        if (args.pluginData === NESTED || args.kind === "entry-point") {
          return undefined;
        }
        // The metafile names only what it becomes.
        seen.imports.add(`${args.importer}\n${args.path}`);
        const { path, namespace, errors } = await context.resolve(args.path, asked(args));
        const found = namespace === "file" && errors.length === 0 ? findPackage(path) : undefined;
        if (found === undefined || !external.has(found.root)) {
          // Not found: esbuild decides whether that is an error and reports it.
          return undefined;
        }
        seen.entries.add(path);
        return { path: `./${placeOf(path)}`, external: true };
      });
    },
  };
}

function asked({ importer, namespace, resolveDir, kind, with: attributes }: OnResolveArgs) {
  return { importer, namespace, resolveDir, kind, with: attributes, pluginData: NESTED };
}

function ownPlaces({ root, findPackage }: CompileOptions, seen: Seen): Plugin {
  return {
    name: "own-places",
    setup({ onLoad }) {
      onLoad({ filter: /\.(?:[cm]?[jt]sx?|node)$/ }, async ({ path }) => {
        const found = findPackage(path);
        if (extname(path) === ".node" && found !== undefined) {
          seen.unfit.add(found.root);
          return { contents: "", loader: "js" };
        }
        const loader = LOADERS[extname(path)];
        if (loader === undefined) {
          return undefined;
        }
        const source = await readFile(path, "utf8");
        if (found !== undefined && staysFile(source)) {
          seen.unfit.add(found.root);
        }
        const own = found === undefined && source.includes("meta");
        const place = slashed(relative(root, path));
        return { contents: own ? withFirst(constantsOf(place), source) : source, loader };
      });
    },
  };
}

function constantsOf(place: string): string {
  return (
    `const __tesseraFilename=__tesseraJoin(__tesseraRoot,${JSON.stringify(place)}),` +
    "__tesseraDirname=__tesseraDirnameOf(__tesseraFilename)," +
    "__tesseraUrl=__tesseraUrlOf(__tesseraFilename).href;"
  );
}

/** For each input, as esbuild writes it, its path in the artifact, real or hypothetical. */
function placesOf(
  { inputs }: Metafile,
  root: string,
  findPackage: FindPackage,
): Map<string, string> {
  return new Map(
    Object.keys(inputs).map((input) => {
      const found = findPackage(resolve(root, input));
      const place =
        found && join("node_modules", found.name, relative(found.root, resolve(root, input)));
      return [input, slashed(place ?? input)];
    }),
  );
}

function noteImports({ inputs }: Metafile, root: string, { imports }: Seen): void {
  for (const [input, { imports: found }] of Object.entries(inputs)) {
    for (const { original, path } of found) {
      imports.add(`${resolve(root, input)}\n${original ?? path}`);
    }
  }
}

/**
 * Replaces paths of this machine in the code by paths in the artifact. esbuild writes
 * them into comments and as names of CommonJS modules, each on a line with nothing
 * else that the source map covers.
 */
function withPlaces(code: string, places: ReadonlyMap<string, string>): string {
  return code.replace(
    /^(?<before>\/\/ | {2}")(?<input>[^"\n]+)(?<after>"\([\w, ]*\) \{)?$/gm,
    (line, before: string, input: string, after = "") => {
      const place = places.get(input);
      return place === undefined ? line : `${before}${place}${after}`;
    },
  );
}

function mapWithPlaces(text: string, places: ReadonlyMap<string, string>): string {
  const map = JSON.parse(text) as { sources: string[] };
  return JSON.stringify({ ...map, sources: map.sources.map((it) => places.get(it) ?? it) });
}

function slashed(path: string): string {
  return path.split(sep).join("/");
}

/** The deepest folder that contains all the files. */
export function commonFolder(files: readonly string[]): string {
  const [first = [], ...others] = files.map((file) => dirname(file).split(sep));
  const length = first.findIndex((name, at) => others.some((other) => other[at] !== name));
  return first.slice(0, length < 0 ? first.length : length).join(sep) || sep;
}
