/**
 * The migration guides: everything they name in code for Tessera exists, as a
 * command with its options, in a client, in the SDK, in the API, or as one of
 * its values.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { Program } from "../cli/program.ts";
import { ROOT } from "../clients/python-environment.ts";

const PAGES = readdirSync(join(ROOT, "docs")).filter((name) => name.startsWith("coming-from-"));

/** Names that the examples of the tables give to things of their own. */
const OWN = new Set([
  ...["send", "add", "client", "task", "ctx", "event", "code", "id", "args", "fields", "function"],
  ...["a", "b", "NAME", "value", "shop", "summarizer", "gpu"],
]);

const KEYWORDS = new Set([
  "throw",
  "new",
  "for",
  "await",
  "const",
  "of",
  "async",
  "true",
  "True",
  "null",
]);

/** Names of the web platform, of formats, of Python, and of BentoML, whose files run unmodified. */
const STANDARD = new Set([
  ...["File", "Authorization", "application", "octet", "Path", "str"],
  ...["route", "to_async", "to_sync", "traffic", "BentoMLException"],
]);

function read(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

/** What stands in code in the last column of a page's tables. */
function claims(page: string): string[] {
  const rows = read(`docs/${page}`)
    .split("\n")
    .filter((line) => line.startsWith("|") && !line.startsWith("|---"));
  const right = rows.map(
    (row) =>
      row
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .at(-1) ?? "",
  );
  return right.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code));
}

const OF_TYPESCRIPT = [
  /\breadonly (\w+)\??:/g,
  /^ {2}(?:async )?(?:\*)?(\w+)\(/gm,
  /\bexport (?:abstract )?(?:async )?(?:function|class|const|type|interface) (\w+)/g,
  /export \{([^}]*)\}/g,
  /"([a-z_]+)"/g,
];

/** Classes, functions, parameters, and fields of classes. */
const OF_PYTHON = [/\b(?:def|class) (\w+)/g, /^ {4,8}(\w+): /gm, /[(,] ?(\w+): /g];

/** Properties, parameters and words of enums. */
const OF_JSON = [/"(\w+)"/g];

/** Names that a source declares, and words that it has in quotes. */
function declared(paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    const text = read(path);
    const patterns = path.endsWith(".py")
      ? OF_PYTHON
      : path.endsWith(".json")
        ? OF_JSON
        : OF_TYPESCRIPT;
    return patterns.flatMap((pattern) =>
      [...text.matchAll(pattern)].flatMap(([, name = ""]) => name.match(/\w+/g) ?? []),
    );
  });
}

const PYTHON = "clients/python/src/tessera";
const SOURCES = [
  ...["index", "options", "context", "file", "service", "endpoint", "errors"].map(
    (name) => `src/sdk/${name}.ts`,
  ),
  ...["endpoint", "remote-task", "state", "connection"].map((name) => `src/client/${name}.ts`),
  ...["sync_client", "settings", "status", "errors"].map((name) => `${PYTHON}/${name}.py`),
  ...["src/server/dataplane/answer.ts", "src/tasks/failure.ts", "src/tasks/task.ts"],
  ...["src/cli/deploy/tessera-yaml.ts", "docs/openapi.json"],
];

describe.each(PAGES)("docs/%s", (page) => {
  let names: Set<string>;
  beforeAll(() => {
    names = new Set([...declared(SOURCES), ...OWN, ...KEYWORDS, ...STANDARD]);
  });

  const all = claims(page);
  const commands = all.filter((code) => /^(?:npx tessera|tessera) [a-z]/.test(code));
  const paths = all.filter((code) => /^[A-Z]+ \//.test(code));
  const flags = all.filter((code) => code.startsWith("--"));
  const files = all.filter((code) => /^tessera\.\w+$/.test(code));
  const rest = all.filter((code) => ![commands, paths, flags, files].flat().includes(code));

  it("says something in code", () => {
    expect(rest.length).toBeGreaterThan(10);
    expect(commands.length).toBeGreaterThan(1);
  });

  it.each([...new Set(commands)])("names a command that is there: %s", async (code) => {
    const words = code.replace(/^(?:npx tessera|tessera) /, "").split(" ");
    const help = await helpOf(words);
    for (const flag of words.filter((word) => word.startsWith("--"))) {
      expect(help).toMatch(new RegExp(`${flag}\\b`));
    }
  });

  it("names options that `serve` or `deploy` has", async () => {
    const help = (await Promise.all([helpOf(["serve"]), helpOf(["deploy"])])).join("\n");
    for (const flag of flags.flatMap((code) => code.match(/--[a-z-]+/g) ?? [])) {
      expect(help).toMatch(new RegExp(`${flag}\\b`));
    }
  });

  it("names paths that are there", () => {
    for (const code of paths) {
      const [method = "", path = ""] = code.split(" ");
      const document = JSON.parse(read("docs/openapi.json"));
      expect(Object.keys(document.paths[path] ?? {}), code).toContain(method.toLowerCase());
    }
  });

  it("names nothing else in code but what is there", () => {
    const unknown = rest.flatMap((code) => {
      const words = code.replace(/"[^"]*"/g, "").match(/[A-Za-z_]\w*/g) ?? [];
      return words.filter((word) => !names.has(word)).map((word) => `${word} in ${code}`);
    });
    expect(unknown).toEqual([]);
  });
});

/** The help of the command that words begin with; fails where there is none. */
async function helpOf(words: readonly string[]): Promise<string> {
  const [group = "", verb] = words;
  const isVerb = verb !== undefined && /^[a-z-]+$/.test(verb) && GROUPS.has(group);
  await using program = new Program([group, ...(isVerb ? [verb] : []), "--help"]);
  const { code, stdout } = await program.ended;
  expect(code).toBe(0);
  expect(stdout).toContain(`Usage: tessera ${[group, ...(isVerb ? [verb] : [])].join(" ")}`);
  return stdout;
}

/** Commands that have commands of their own. */
const GROUPS = new Set(["task", "deployment", "token"]);
