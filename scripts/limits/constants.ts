/** Reads the numbers that the modules of src/ declare at their top, with their comments. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { evaluate } from "./evaluate.ts";
import { hasUnit, type Kind, kindOf } from "./kinds.ts";

const ROOT = dirname(dirname(import.meta.dirname));

/** A constant, or one number of a constant that is a table. */
export interface Constant {
  readonly name: string;
  readonly value: number;
  /** Undefined where there is no doc comment above it. */
  readonly doc: string | undefined;
  /** From the root, such as `src/queue/maintenance/leases.ts`. */
  readonly file: string;
  /** Undefined where the name says no unit, and so no limit. */
  readonly kind: Kind | undefined;
}

const DECLARATION =
  /(?:^\/\*\*(?<doc>(?:(?!\*\/)[\s\S])*)\*\/\n)?^(?:export )?const (?<name>[A-Z][A-Z0-9_]*)(?:: (?<type>\w+))? =\s+(?<initializer>[^;]*);/gm;
const MEMBER =
  /(?:^ *\/\*\*(?<doc>(?:(?!\*\/)[\s\S])*)\*\/\n)? *(?:readonly )?\b(?<name>\w+)\??: (?<initializer>[^,;{}]+)[,;\n}]?/gm;

/** Every number that is declared at the top of a module. */
export const constants: readonly Constant[] = readdirSync(join(ROOT, "src"), { recursive: true })
  .map((path) => `src/${String(path).replaceAll("\\", "/")}`)
  .filter((path) => /\.tsx?$/.test(path))
  .sort()
  .flatMap(constantsOf);

function constantsOf(file: string): Constant[] {
  const text = readFileSync(join(ROOT, file), "utf8");
  return [...text.matchAll(DECLARATION)].flatMap(({ groups = {} }) => {
    const { name = "", doc, type, initializer = "" } = groups;
    const constant = (name: string, initializer: string, doc: string | undefined): Constant[] => {
      const value = evaluate(initializer, (other) => numberOf(other, file));
      return value === undefined
        ? []
        : [{ name, value, doc: plain(doc), file, kind: kindOf(name) }];
    };
    if (!initializer.startsWith("{")) {
      return constant(name, initializer, doc);
    }
    const documented = docsOf(type, text);
    return members(initializer)
      .flatMap(([member, value, own]) =>
        constant(
          hasUnit(name) ? `${name} (${member})` : `${name}.${member}`,
          value,
          own ?? documented.get(member) ?? doc,
        ),
      )
      .filter(({ kind }) => kind !== undefined);
  });
}

type Member = readonly [name: string, initializer: string, doc: string | undefined];

/** The members of a table; none of a table of tables. */
function members(text: string): Member[] {
  return /[^{]*\{[^}]*\w/.test(text.slice(1))
    ? []
    : [...text.slice(1).matchAll(MEMBER)].map(
        ({ groups: { name = "", initializer = "", doc } = {} }) => [name, initializer.trim(), doc],
      );
}

/** The comments of an interface in the same file, by member. */
function docsOf(type: string | undefined, text: string): ReadonlyMap<string, string | undefined> {
  const body = text.match(new RegExp(`^export interface ${type} \\{\\n([\\s\\S]*?)^\\}`, "m"))?.[1];
  return new Map(members(`{${body ?? ""}`).map(([name, , doc]) => [name, doc]));
}

/** Of another constant: of the same file, or imported from one of ours. */
function numberOf(name: string, file: string): number | undefined {
  const text = readFileSync(join(ROOT, file), "utf8");
  const initializer = text.match(
    new RegExp(`^(?:export )?const ${name}(?:: number)? =\\s+([^;]*);`, "m"),
  )?.[1];
  if (initializer !== undefined) {
    return evaluate(initializer, (other) => numberOf(other, file));
  }
  const from = text.match(
    new RegExp(`^import \\{[^}]*\\b${name}\\b[^}]*\\} from "(\\.[^"]+)"`, "m"),
  );
  return from?.[1] === undefined
    ? undefined
    : numberOf(name, posix.join(posix.dirname(file), from[1]));
}

/** The text of a comment in one line. */
function plain(doc: string | undefined): string | undefined {
  return doc
    ?.replaceAll(/^ *\* ?/gm, "")
    .replaceAll(/\s+/g, " ")
    .trim();
}
