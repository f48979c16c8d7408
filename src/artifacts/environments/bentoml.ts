/**
 * What a service of BentoML says of its packages: in the `Image` of its module, or in
 * `bentofile.yaml`. The module is parsed and not run, because running it needs the packages.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { parseBentoSource } from "../bento-models.ts";
import { EnvironmentError } from "./environment.ts";
import { type PythonInterpreter, runInterpreter } from "./interpreters.ts";

/** What a service asks for. */
export interface Needs {
  /** Requirements, such as `numpy>=2`. */
  readonly packages: readonly string[];
  /** Files with requirements, from the folder of the service. */
  readonly files: readonly string[];
}

/** Parsing a module takes milliseconds; a cold start of an interpreter a few seconds. */
const PARSE_TIMEOUT_MS = 30_000;
/** A module's list of packages. */
const MAX_PARSED_BYTES = 1024 ** 2;

/** BentoML adds itself to what its services need. */
const BENTOML = "bentoml";

/**
 * Prints what the calls of an image's methods name, as JSON; nothing for a module without such
 * calls. Arguments are literals, or constants of the module.
 */
const READ_IMAGE = `
import ast, json, sys
path = sys.argv[1]
with open(path, "rb") as opened:
    tree = ast.parse(opened.read(), path)
constants = {
    target.id: each.value
    for each in tree.body if isinstance(each, ast.Assign)
    for target in each.targets if isinstance(target, ast.Name)
}
METHODS = {
    "python_packages": "packages", "requirements_file": "files", "pyproject_toml": "files",
    "system_packages": "system",
}
needs, unclear, base = {"packages": [], "files": [], "system": []}, [], None

declared = {"packages": [], "image": None}

def service_of(node):
    """What a decorator service(packages=..., image=...) names, as far as it is written out."""
    if getattr(node.func, "attr", getattr(node.func, "id", "")) != "service":
        return
    for each in node.keywords:
        try:
            if each.arg == "packages":
                declared["packages"] += texts(each.value)
            elif each.arg == "image":
                [declared["image"]] = texts(each.value)
        except (ValueError, TypeError, SyntaxError):
            pass

def imports(node):
    if isinstance(node, ast.Import):
        return any(name.name.split(".")[0] == "bentoml" for name in node.names)
    return isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "bentoml"

def texts(node):
    if isinstance(node, ast.Name):
        node = constants.get(node.id, node)
    if isinstance(node, ast.Starred):
        return texts(node.value)
    value = ast.literal_eval(node)
    value = [value] if isinstance(value, str) else list(value)
    if not all(isinstance(each, str) for each in value):
        raise ValueError
    return value

named_by_bentoml = {}
for node in ast.walk(tree):
    if isinstance(node, ast.Call):
        service_of(node)
    elif isinstance(node, (ast.Import, ast.ImportFrom)) and imports(node):
        for each in node.names:
            known = each.asname or each.name.split(".")[0]
            named_by_bentoml[known] = each.name.split(".")[-1]

def is_image(node):
    """Whether a call makes an image of BentoML, and not one of a library for pictures."""
    first, last = node, None
    while isinstance(first, ast.Attribute):
        first, last = first.value, last or first.attr
    if not isinstance(first, ast.Name) or first.id not in named_by_bentoml:
        return False
    return (last or named_by_bentoml[first.id]) == "Image"

found = False
if any(imports(node) for node in ast.walk(tree)):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and is_image(node.func):
            named = [*node.args[:1], *(each.value for each in node.keywords if each.arg == "base_image")]
            try:
                [base] = texts(named[0]) if named else [base]
            except (ValueError, TypeError, SyntaxError):
                unclear.append("line %d: base_image" % node.lineno)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method = node.func.attr
            if method in METHODS:
                found = found or method != "system_packages"
                arguments = [*node.args, *(each.value for each in node.keywords)]
                try:
                    named = [text for each in arguments for text in texts(each)]
                except (ValueError, TypeError, SyntaxError):
                    unclear.append("line %d: %s" % (node.lineno, method))
                    continue
                if method == "pyproject_toml" and not named:
                    named = ["pyproject.toml"]
                needs[METHODS[method]] += named
written = declared["packages"] or declared["image"]
if found or needs["system"] or base or unclear or written:
    print(json.dumps({**needs, "base": base, "unclear": unclear, "found": found, "declared": declared}))
`;

/**
 * What the images of a module name of packages for Python; undefined without any. Rejects with an
 * `EnvironmentError`.
 */
export async function imageNeeds(
  module: string,
  interpreter: Pick<PythonInterpreter, "path">,
): Promise<Needs | undefined> {
  const image = await readImage(module, interpreter);
  if (image?.found !== true) {
    return undefined;
  }
  refuseUnclear(image, { module, file: "requirements.txt", calls: OF_PYTHON });
  return { packages: [BENTOML, ...image.packages], files: image.files };
}

/** What a service of BentoML needs besides its packages. */
export interface SystemNeeds {
  readonly packages: readonly string[];
  /** Models of BentoML's store as sources, by names made of their own. */
  readonly models: { readonly [name: string]: string };
  /** The container image that it is built on; undefined: it names none. */
  readonly image?: string;
  /** What the decorator of the service names, as far as it is written out in the module. */
  readonly declared: { readonly packages: readonly string[]; readonly image?: string };
}

/**
 * The system packages and the base image of a service of BentoML: those of the `Image` in its
 * module, and those of `docker` in `bentofile.yaml`, which may name models, too. Rejects with an `EnvironmentError`.
 */
export async function systemNeeds(
  folder: string,
  entry: string,
  interpreter: Pick<PythonInterpreter, "path">,
): Promise<SystemNeeds> {
  const image = await readImage(join(folder, entry), interpreter);
  if (image !== undefined) {
    refuseUnclear(image, { module: join(folder, entry), file: "tessera.yaml", calls: OF_SYSTEM });
  }
  const text = await readFile(join(folder, "bentofile.yaml"), "utf8").catch(() => "");
  const { docker, models } = partsOf(text);
  const { system_packages: named = [], base_image: base } = docker ?? {};
  if (!Array.isArray(named) || !named.every((each) => typeof each === "string")) {
    throw new EnvironmentError(
      "LOCK_INVALID",
      "docker.system_packages in bentofile.yaml is no list of system packages, such as - ffmpeg",
    );
  }
  if (base !== undefined && base !== null && typeof base !== "string") {
    throw new EnvironmentError(
      "LOCK_INVALID",
      "docker.base_image in bentofile.yaml is no image, such as debian:12",
    );
  }
  const chosen = image?.base || base;
  const { packages: declared = [], image: root } = image?.declared ?? {};
  return {
    packages: [...(image?.system ?? []), ...named],
    models: namedModels(models),
    ...(chosen && { image: chosen }),
    declared: { packages: declared, ...(root && { image: root }) },
  };
}

/** Of `models`: each is a tag, or has one. Throws an `EnvironmentError`. */
function namedModels(models: unknown): SystemNeeds["models"] {
  const all = Array.isArray(models ?? []) ? ((models ?? []) as readonly unknown[]) : [undefined];
  return Object.fromEntries(
    all.map((each) => {
      const tag = (each as { readonly tag?: unknown } | null)?.tag ?? each;
      const source = `bentoml://${tag}`;
      const { name } = parseBentoSource(source) ?? {};
      if (typeof tag !== "string" || name === undefined) {
        throw new EnvironmentError(
          "LOCK_INVALID",
          "models in bentofile.yaml is no list of models of BentoML, such as - reader:latest",
        );
      }
      return [name.replaceAll(".", "-"), source];
    }),
  );
}

/** The calls of an image that name packages for Python. */
const OF_PYTHON = ["python_packages", "requirements_file", "pyproject_toml"];
const OF_SYSTEM = ["system_packages", "base_image"];

interface Image extends Needs {
  readonly system: readonly string[];
  /** The image that it is built on; null or empty: that of BentoML. */
  readonly base: string | null;
  /** What the decorator of the service names. */
  readonly declared: { readonly packages: readonly string[]; readonly image: string | null };
  /** It names packages for Python. */
  readonly found: boolean;
  /** Calls whose arguments cannot be read, such as `line 4: system_packages`. */
  readonly unclear: readonly string[];
}

/** Throws for one of these calls whose arguments are not read without running the module. */
function refuseUnclear(
  { unclear }: Image,
  {
    module,
    file,
    calls,
  }: { readonly module: string; readonly file: string; readonly calls: readonly string[] },
): void {
  const found = unclear.find((call) => calls.includes(call.split(": ")[1] ?? ""));
  if (found !== undefined) {
    throw new EnvironmentError(
      "LOCK_INVALID",
      `${module}, ${found} takes more than texts and constants of the module, which are read without running it: name ${found.endsWith("base_image") ? "image" : "the packages"} in ${file}`,
    );
  }
}

async function readImage(
  module: string,
  { path }: Pick<PythonInterpreter, "path">,
): Promise<Image | undefined> {
  let printed: string;
  try {
    const limits = { timeoutMs: PARSE_TIMEOUT_MS, maxPrintedBytes: MAX_PARSED_BYTES };
    printed = await runInterpreter(path, ["-c", READ_IMAGE, module], limits);
  } catch {
    // A syntax error: loading the service says where.
    return undefined;
  }
  return printed === "" ? undefined : (JSON.parse(printed) as Image);
}

/** What `bentofile.yaml` names. Throws an `EnvironmentError`. */
export function readBentofile(text: string): Needs {
  const { packages = [], requirements_txt: named } = partsOf(text).python ?? {};
  if (!Array.isArray(packages) || !packages.every((each) => typeof each === "string")) {
    throw new EnvironmentError(
      "LOCK_INVALID",
      "python.packages in bentofile.yaml is no list of requirements, such as - numpy>=2",
    );
  }
  const files = typeof named === "string" ? [named] : [];
  return { packages: [BENTOML, ...packages], files };
}

/** The parts of `bentofile.yaml` that matter here. */
function partsOf(text: string): {
  readonly python?: { readonly packages?: unknown; readonly requirements_txt?: unknown };
  readonly docker?: { readonly system_packages?: unknown; readonly base_image?: unknown };
  readonly models?: unknown;
} {
  try {
    return (parse(text) as object | null) ?? {};
  } catch (err) {
    throw new EnvironmentError("LOCK_INVALID", `bentofile.yaml is no YAML: ${err}`);
  }
}
