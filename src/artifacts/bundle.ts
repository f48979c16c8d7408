/**
 * The bundler of `tessera serve`: the entry of a service and the local modules it
 * imports become one ES module with an inline source map and lowered decorators.
 * Packages stay imports, which the worker resolves from the service's folder.
 *
 * One module has one `import.meta`, that of the entry. So that every local module
 * still gets its own `url`, `dirname` and `filename`, these three are replaced by
 * constants, declared on the first line of each module; esbuild renames collisions.
 */
import { readFile, realpath, stat } from "node:fs/promises";
import { findPackageJSON } from "node:module";
import { dirname, extname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type BuildFailure, build, type Loader, type Message, type Plugin } from "esbuild";

/** Thrown for a service file that cannot be used. The message says where and why. */
export class ServiceFileError extends Error {
  override readonly name = "ServiceFileError";
}

export interface ServiceBundle {
  /** One ES module, with an inline source map. */
  readonly code: string;
  /** The real path of the service's source file. */
  readonly servicePath: string;
  /** Every bundled file, for `--watch`. */
  readonly watchFiles: readonly string[];
  /** esbuild's warnings for the log, one line each. */
  readonly warnings: readonly string[];
}

/** Errors of the bundler that a build shows. */
const MAX_SHOWN_ERRORS = 5;

/** esbuild's loaders by file extension. */
export const LOADERS: Readonly<Record<string, Loader>> = {
  ".ts": "ts",
  ".mts": "ts",
  ".cts": "ts",
  ".tsx": "tsx",
  ".js": "js",
  ".mjs": "js",
  ".cjs": "js",
  ".jsx": "jsx",
};

/** The constants that replace `import.meta` of each module. */
export const OWN_META: Readonly<Record<string, string>> = {
  "import.meta.url": "__tesseraUrl",
  "import.meta.dirname": "__tesseraDirname",
  "import.meta.filename": "__tesseraFilename",
};

/** Bundles the service at a path. Rejects with a `ServiceFileError` when that fails. */
export async function bundleService(path: string): Promise<ServiceBundle> {
  const servicePath = await findService(path);
  const folder = dirname(servicePath);
  try {
    const result = await build({
      entryPoints: [servicePath],
      absWorkingDir: folder,
      // Never written: it makes the source map's paths relative to the folder.
      outfile: join(folder, "bundled-service.js"),
      write: false,
      bundle: true,
      format: "esm",
      platform: "node",
      target: "node24",
      packages: "external",
      sourcemap: "inline",
      sourcesContent: false,
      metafile: true,
      logLevel: "silent",
      define: OWN_META,
      plugins: [sdkStaysOutside, refusesFormerName, ownImportMeta],
    });
    await refuseDuplicates(result.warnings, folder);
    return {
      code: result.outputFiles[0]?.text ?? "",
      servicePath,
      watchFiles: Object.keys(result.metafile.inputs).map((input) => resolve(folder, input)),
      warnings: result.warnings.map(describe),
    };
  } catch (err) {
    throw asServiceFileError(err);
  }
}

/** The real path of a service file. Rejects with a `ServiceFileError` for anything else. */
export async function findService(path: string): Promise<string> {
  let found: Awaited<ReturnType<typeof stat>>;
  let real: string;
  try {
    real = await realpath(path);
    found = await stat(real);
  } catch (err) {
    const code = (err as NodeJS.ErrnoException).code;
    const missing = code === "ENOENT" || code === "ENOTDIR";
    throw new ServiceFileError(
      missing
        ? `service file ${path} does not exist`
        : `service file ${path} cannot be read: ${code}`,
      { cause: err },
    );
  }
  if (!found.isFile()) {
    const what = found.isDirectory() ? "a folder" : "not a regular file";
    throw new ServiceFileError(`service file ${path} is ${what}; name the file with the service`);
  }
  if (!(extname(real) in LOADERS)) {
    throw new ServiceFileError(
      `service file ${path} is not TypeScript or JavaScript (${Object.keys(LOADERS).join(", ")})`,
    );
  }
  return real;
}

/** Keeps the SDK out of the bundle, even if `tsconfig.json` maps its name: the worker has its own copy. */
export const sdkStaysOutside: Plugin = {
  name: "sdk-stays-outside",
  setup({ onResolve }) {
    onResolve({ filter: /^tessera-platform$/ }, ({ path }) => ({ path, external: true }));
  },
};

/** Marks resolutions that a plugin asks for itself. */
export const NESTED = Symbol("asked by a plugin");

/** Says what to write instead of `tessera`, the SDK's former name, unless another package has it. */
export const refusesFormerName: Plugin = {
  name: "refuses-former-name",
  setup({ onResolve, resolve: resolveImport }) {
    onResolve({ filter: /^tessera(?:\/client)?$/ }, async ({ path, ...asked }) => {
      if (asked.pluginData === NESTED) {
        return undefined;
      }
      const found = await resolveImport(path, { ...asked, pluginData: NESTED });
      // Where packages stay outside, esbuild does not look for them.
      const isFound =
        found.errors.length === 0 && (!found.external || isInstalled("tessera", asked.resolveDir));
      const name = path.replace("tessera", "tessera-platform");
      return isFound
        ? undefined
        : { errors: [{ text: `Could not resolve "${path}": import from "${name}" instead` }] };
    });
  },
};

function isInstalled(name: string, folder: string): boolean {
  try {
    return findPackageJSON(name, pathToFileURL(join(folder, "importer.js"))) !== undefined;
  } catch {
    return false;
  }
}

const ownImportMeta: Plugin = {
  name: "own-import-meta",
  setup({ onLoad }) {
    onLoad({ filter: /\.[cm]?[jt]sx?$/ }, async ({ path }) => {
      const source = await readFile(path, "utf8");
      const loader = LOADERS[extname(path)] ?? "default";
      // No `import.meta` is written without this word, however it is spaced.
      return {
        contents: source.includes("meta") ? withFirst(constantsOf(path), source) : source,
        loader,
      };
    });
  },
};

/** The declarations of a module's constants. */
function constantsOf(path: string): string {
  const constants = {
    __tesseraUrl: pathToFileURL(path).href,
    __tesseraDirname: dirname(path),
    __tesseraFilename: path,
  };
  const declared = Object.entries(constants).map(
    ([name, value]) => `${name}=${JSON.stringify(value)}`,
  );
  return `const ${declared.join(",")};`;
}

/** The source with declarations on its first line, so that line numbers do not change. */
export function withFirst(declarations: string, source: string): string {
  return `${declarations}${source.replace(/^#!/, "//")}`;
}

/** Throws for two endpoints of one name, of which JavaScript would silently keep the second. */
export async function refuseDuplicates(
  warnings: readonly Message[],
  folder: string,
): Promise<void> {
  for (const warning of warnings) {
    const { location } = warning;
    if (warning.id !== "duplicate-object-key" || location === null) {
      continue;
    }
    const source = await readFile(resolve(folder, location.file), "utf8");
    const name = duplicateEndpoint(source, location);
    if (name !== undefined) {
      throw new ServiceFileError(`${place(warning)}two endpoints named ${name}`);
    }
  }
}

/** Converts an error of esbuild into a `ServiceFileError`; returns any other error unchanged. */
export function asServiceFileError(err: unknown): unknown {
  return isBuildFailure(err) ? new ServiceFileError(describeAll(err.errors), { cause: err }) : err;
}

/** True for esbuild's errors about code. */
export function isBuildFailure(err: unknown): err is BuildFailure {
  return err instanceof Error && "errors" in err && Array.isArray(err.errors);
}

function describeAll(errors: readonly Message[]): string {
  const lines = errors.slice(0, MAX_SHOWN_ERRORS).map(describe);
  const rest = errors.length - lines.length;
  return rest > 0 ? [...lines, `and ${rest} more`].join("\n") : lines.join("\n");
}

/** A message of esbuild as one line, with its place. */
export function describe(message: Message): string {
  const isPackage = /^Could not resolve "[^./#"][^"]*"$/.test(message.text);
  return `${place(message)}${message.text}${isPackage ? "; install it where the service is" : ""}`;
}

/** `file:line:column: `, counted from 1 as editors do. */
function place({ location }: Message): string {
  return location === null ? "" : `${location.file}:${location.line}:${location.column + 1}: `;
}

// Detects duplicate endpoints: whether a key that esbuild found twice in an object
// literal is an endpoint. No parser is needed: strings, templates, regular
// expressions and comments are blanked, so brackets can be matched, and the object
// around the key must be the one after `endpoints`.

/** A place as esbuild gives it: lines from 1, columns from 0 in bytes of UTF-8. */
interface Place {
  readonly line: number;
  readonly column: number;
  readonly lineText: string;
}

/** The name of the endpoint at a place, or undefined when the object there is another. */
function duplicateEndpoint(source: string, place: Place): string | undefined {
  const offset = offsetOf(source, place);
  const before = blankText(source).slice(0, offset);
  const open = enclosingBrace(before);
  if (open === undefined || !/\bendpoints\b[^;{}()]*[:=]\s*$/.test(before.slice(0, open))) {
    return undefined;
  }
  return /^(?:"([^"]*)"|'([^']*)'|([\w$-]+))/.exec(source.slice(offset))?.slice(1).find(Boolean);
}

function offsetOf(source: string, { line, column, lineText }: Place): number {
  let start = 0;
  for (let current = 1; current < line; current += 1) {
    start = source.indexOf("\n", start) + 1;
  }
  return start + Buffer.from(lineText).subarray(0, column).toString().length;
}

/** The position of the innermost open brace. */
function enclosingBrace(blanked: string): number | undefined {
  let depth = 0;
  for (let index = blanked.length - 1; index >= 0; index -= 1) {
    const char = blanked[index] ?? "";
    if (")]}".includes(char)) {
      depth += 1;
    } else if ("([{".includes(char)) {
      if (depth === 0) {
        return char === "{" ? index : undefined;
      }
      depth -= 1;
    }
  }
  return undefined;
}

/** Comments, strings, templates without nesting, and regular expressions where one can stand. */
const TEXT = new RegExp(
  [
    String.raw`\/\/[^\n]*`,
    String.raw`\/\*[\s\S]*?\*\/`,
    String.raw`"(?:\\[\s\S]|[^"\\\n])*"`,
    String.raw`'(?:\\[\s\S]|[^'\\\n])*'`,
    String.raw`\`(?:\\[\s\S]|[^\`\\])*\``,
    String.raw`(?<=(?:^|[(,=:[!&|?{};+*%<>~^-]|\breturn|=>)\s*)\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n])+\/\w*`,
  ].join("|"),
  "g",
);

function blankText(source: string): string {
  return source.replace(TEXT, (text) => text.replace(/[^\n]/g, " "));
}
