/** Names and texts of a service as they stand in generated Python. */

/** https://docs.python.org/3/reference/lexical_analysis.html#keywords, and what a method has. */
const KEYWORDS = new Set(
  `False None True and as assert async await break class continue def del elif else except
  finally for from global if import in is lambda nonlocal not or pass raise return try while
  with yield self`.split(/\s+/),
);

/** A name that is valid in Python, close to the given one, and none of those that are taken. */
export function identifier(name: string, taken: ReadonlySet<string> = new Set()): string {
  const plain = name.replaceAll(/[^A-Za-z0-9_]/g, "_").replace(/^_+/, "");
  let free = /^[A-Za-z]/.test(plain) ? plain : `x${plain}`;
  while (KEYWORDS.has(free) || taken.has(free)) {
    free += "_";
  }
  return free;
}

/** Names of classes, each given once. */
export class ClassNames {
  readonly #given = new Set<string>();

  /** `SummarizeBatchResult` of `summarize_batch` and `result`. */
  of(...parts: readonly string[]): string {
    const words = parts.flatMap((part) => part.split(/[^A-Za-z0-9]+/)).filter(Boolean);
    const joined = words.map((word) => `${word[0]?.toUpperCase()}${word.slice(1)}`).join("");
    const name = /^[A-Za-z]/.test(joined) ? joined : `X${joined}`;
    for (let number = 1; ; number += 1) {
      const free = number === 1 ? name : `${name}${number}`;
      if (!this.#given.has(free)) {
        this.#given.add(free);
        return free;
      }
    }
  }
}

/** A string literal. */
export function text(value: string): string {
  return JSON.stringify(value).replaceAll("\u007f", "\\u007f");
}

/** Foreign text on one line, without what could end a comment or a docstring around it. */
export function prose(foreign: string): string {
  return foreign
    .replaceAll(/[\s\p{Cc}\p{Cs}]+/gu, " ")
    .trim()
    .replaceAll("\\", "\\\\")
    .replaceAll('"', '\\"');
}

/** A docstring of paragraphs; empty without any. */
export function docstring(paragraphs: readonly string[], indent: string): string {
  const told = paragraphs.filter((paragraph) => paragraph !== "");
  if (told.length === 0) {
    return "";
  }
  const end = told.length === 1 ? "" : `\n${indent}`;
  return `${indent}"""${told.join(`\n\n${indent}`)}${end}"""\n`;
}
