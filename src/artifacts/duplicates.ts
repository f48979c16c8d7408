/**
 * Detects duplicate endpoints: whether a key that esbuild found twice in an object
 * literal is an endpoint. No parser is needed: strings, templates, regular
 * expressions and comments are blanked, so brackets can be matched, and the object
 * around the key must be the one after `endpoints`.
 */

/** A place as esbuild gives it: lines from 1, columns from 0 in bytes of UTF-8. */
export interface Place {
  readonly line: number;
  readonly column: number;
  readonly lineText: string;
}

/** The name of the endpoint at a place, or undefined when the object there is another. */
export function duplicateEndpoint(source: string, place: Place): string | undefined {
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
