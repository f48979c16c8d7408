/**
 * A project made of the files in `templates/`. They are a project that runs as it stands, called
 * my-service; a new one gets its own name. When a file cannot be written, those before it are
 * removed, so that the same command can be tried again.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { CliError, usageError } from "../failure.ts";
import { plain } from "../plain.ts";

export const LANGUAGES = ["typescript", "python"] as const;
export type Language = (typeof LANGUAGES)[number];

/** Beside `src/` as beside `dist/`. */
const TEMPLATES = fileURLToPath(new URL("../../../templates/", import.meta.url));

/** What the service of the templates is called. */
const TEMPLATE_NAME = "my-service";

/** In a package of npm, a file called .gitignore would be read as its own. */
const RENAMED: Readonly<Record<string, string>> = { gitignore: ".gitignore" };

/** What running a template in a checkout leaves there. */
const LEFT_BY_RUNS = new Set([
  "node_modules",
  "__pycache__",
  ".venv",
  ".mypy_cache",
  ".pytest_cache",
]);

/** What a new repository has; no file of a project is called so. */
const HARMLESS = new Set([".git"]);

/** How many files in the way an error names. */
const MAX_NAMED = 5;

/** A DNS label's, as deployments have. */
const MAX_NAME_CHARACTERS = 63;

interface Project {
  /** Absolute; made if it does not exist. */
  readonly folder: string;
  readonly language: Language;
  readonly name: string;
}

/** The name of a service in a folder called so: a DNS label that begins with a letter. */
export function nameFor(folder: string): string {
  const label = folder
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^[^a-z]+/, "")
    .slice(0, MAX_NAME_CHARACTERS)
    .replace(/-$/, "");
  return label || TEMPLATE_NAME;
}

/**
 * Writes the files of a project. Throws a `CliError` if the folder is not empty, or a file cannot
 * be written; then nothing is left behind.
 */
export function writeProject({ folder, language, name }: Project): void {
  refuseFull(folder);
  const template = join(TEMPLATES, language);
  const written: string[] = [];
  try {
    for (const file of filesBelow(template)) {
      const path = join(folder, dirname(file), targetName(file));
      noteNew(mkdirSync(dirname(path), { recursive: true }), written);
      const text = readFileSync(join(template, file), "utf8");
      writeFileSync(path, text.replaceAll(TEMPLATE_NAME, name), { flag: "wx" });
      written.push(path);
    }
  } catch (err) {
    for (const path of written.reverse()) {
      rmSync(path, { recursive: true, force: true });
    }
    throw new CliError(`the project cannot be written: ${plain((err as Error).message)}`, {
      hint: "nothing was left behind; name a folder that you may write to: tessera init <folder>",
      cause: err,
    });
  }
}

/** Notes a folder that was not there before, the topmost of those made. */
function noteNew(made: string | undefined, written: string[]): void {
  if (made !== undefined) {
    written.push(made);
  }
}

function targetName(file: string): string {
  const name = file.slice(file.lastIndexOf("/") + 1);
  return RENAMED[name] ?? name;
}

/** The files of a template, relative to it, in a stable order. */
function filesBelow(template: string): string[] {
  return readdirSync(template, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(template, join(entry.parentPath, entry.name)).replaceAll("\\", "/"))
    .filter((path) => !path.split("/").some((part) => LEFT_BY_RUNS.has(part)))
    .sort();
}

function refuseFull(folder: string): void {
  const inTheWay = entriesOf(folder).filter((name) => !HARMLESS.has(name));
  if (inTheWay.length === 0) {
    return;
  }
  const more = inTheWay.length - MAX_NAMED;
  const named = inTheWay.slice(0, MAX_NAMED).map(plain).join(", ");
  throw usageError(
    `the folder ${plain(folder)} is not empty: it has ${named}${more > 0 ? ` and ${more} more` : ""}`,
    "name an empty or new folder: tessera init <folder>",
  );
}

function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch (err) {
    const { code, message } = err as NodeJS.ErrnoException;
    if (code === "ENOENT") {
      return [];
    }
    const what = code === "ENOTDIR" ? `${folder} is a file` : message;
    throw usageError(
      `the project cannot be made there: ${plain(what)}`,
      "name an empty or new folder: tessera init <folder>",
    );
  }
}
