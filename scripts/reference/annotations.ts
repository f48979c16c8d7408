/** Takes the annotations that only the server reads out of the text of a proto file. */

/** Files that declare annotations. */
const DECLARE_ANNOTATIONS = /^(?:buf\/|google\/api\/annotations|tessera\/v1\/access)/;

/** A comment, a text, a name, or one character of punctuation. */
const TOKEN = /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[\w.]+|[^\s\w]/g;

interface Token {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

interface Cut {
  readonly start: number;
  readonly end: number;
  readonly instead: string;
}

/**
 * Returns the source without imports of annotations, without options whose name is in parentheses,
 * and without the empty bodies that these leave. Comments stay; the result wants formatting.
 * Throws on a bracket that nothing closes.
 */
export function withoutAnnotations(source: string): string {
  const tokens = tokensOf(source);
  const cuts: Cut[] = [];
  for (let index = 0; index < tokens.length; index += 1) {
    const cut = cutAt(tokens, index, source);
    if (cut !== undefined) {
      cuts.push(cut);
      // What is inside is gone.
      while (index + 1 < tokens.length && (tokens[index + 1]?.start ?? 0) < cut.end) {
        index += 1;
      }
    }
  }
  const kept = cuts.reduceRight(
    (text, { start, end, instead }) => text.slice(0, start) + instead + text.slice(end),
    source,
  );
  return kept.replace(/(\breturns \([^)]*\)) \{\s*\}/g, "$1;");
}

function tokensOf(source: string): Token[] {
  return [...source.matchAll(TOKEN)]
    .map(({ 0: text, index }) => ({ text, start: index, end: index + text.length }))
    .filter(({ text }) => !/^\/[/*]/.test(text));
}

function cutAt(tokens: readonly Token[], index: number, source: string): Cut | undefined {
  const token = tokens[index];
  const next = tokens[index + 1];
  if (token === undefined || next === undefined) {
    return undefined;
  }
  if (token.text === "import" && DECLARE_ANNOTATIONS.test(next.text.slice(1))) {
    return wholeLines(source, token.start, closing(tokens, index, ";").end);
  }
  if (token.text === "option" && next.text === "(") {
    return wholeLines(source, token.start, closing(tokens, index, ";").end);
  }
  if (token.text === "[" && /^\d+$/.test(tokens[index - 1]?.text ?? "")) {
    return cutOptions(tokens, index, source);
  }
  return undefined;
}

/** The options of a field or value: keeps those whose name is not in parentheses. */
function cutOptions(tokens: readonly Token[], index: number, source: string): Cut {
  const end = closing(tokens, index + 1, "]");
  const last = tokens.indexOf(end);
  const kept: string[] = [];
  for (let first = index + 1; first < last; ) {
    const comma = closing(tokens, first, ",", end);
    if (tokens[first]?.text !== "(") {
      kept.push(source.slice(tokens[first]?.start, comma.start).trim());
    }
    first = tokens.indexOf(comma) + 1;
  }
  const start = tokens[index - 1]?.end ?? 0;
  return { start, end: end.end, instead: kept.length === 0 ? "" : ` [${kept.join(", ")}]` };
}

/** The next token `text` outside of brackets, or `otherwise`, if that comes first. */
function closing(tokens: readonly Token[], from: number, text: string, otherwise?: Token): Token {
  let depth = 0;
  for (const token of tokens.slice(from)) {
    if (depth === 0 && (token.text === text || token === otherwise)) {
      return token;
    }
    if ("([{".includes(token.text)) {
      depth += 1;
    } else if (")]}".includes(token.text)) {
      depth -= 1;
    }
  }
  throw new Error(`nothing closes what begins at ${tokens[from]?.start}: "${text}" is missing`);
}

/** Cuts a statement with its indentation and the end of its line, if nothing else is on it. */
function wholeLines(source: string, start: number, end: number): Cut {
  const before = source.slice(0, start).search(/[ \t]*$/);
  const after = /^[ \t]*\n/.exec(source.slice(end))?.[0].length ?? 0;
  return { start: before, end: end + after, instead: "" };
}
