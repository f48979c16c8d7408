/** The lexer of instant vector selectors, like promql/parser/lex.go of Prometheus. */
import { SelectorError } from "./error.ts";

export interface Token {
  readonly kind: "identifier" | "string" | "{" | "}" | "," | "operator" | "end" | "other";
  /** The source text; for a string, its value. */
  readonly text: string;
  /** How errors show it. */
  readonly shown: string;
  readonly at: number;
}

/** Returns the next token; after the last one, `end` on every call. Throws a SelectorError. */
export type Lexer = () => Token;

const BLANK = /(?:[ \t\r\n]|#[^\r\n]*)*/y;
const NAME = /[a-zA-Z_:][a-zA-Z0-9_:]*/y;
const LABEL = /[a-zA-Z_][a-zA-Z0-9_]*/y;
const OPERATOR = /=~|!~|!=|=/y;
const NUMBER = /[0-9][0-9a-zA-Z_.]*/y;

/** Keywords of PromQL, in any case, which cannot be names of metrics. */
const RESERVED = /^(?:atan2|bool|group_left|group_right|ignoring|on)$/i;
const NUMBER_WORD = /^(?:inf|nan)$/i;

export function lex(text: string): Lexer {
  let at = 0;
  let inBraces = false;

  const match = (pattern: RegExp): string => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0] ?? "";
  };
  const token = (kind: Token["kind"], length: number, shown: string): Token => {
    const found = { kind, text: text.slice(at, at + length), shown, at };
    at += length;
    return found;
  };

  const name = (word: string): Token => {
    if (NUMBER_WORD.test(word)) {
      return token("other", word.length, `number ${JSON.stringify(word)}`);
    }
    const kind = RESERVED.test(word) ? "other" : "identifier";
    const shown = kind === "other" ? `<${word.toLowerCase()}>` : `identifier "${word}"`;
    return token(kind, word.length, shown);
  };

  const next = (): Token => {
    at += match(BLANK).length;
    const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
    if (at >= text.length) {
      if (inBraces) {
        throw new SelectorError(text, at, "unexpected end of input inside braces");
      }
      return token("end", 0, "end of input");
    }
    const word = match(inBraces ? LABEL : NAME);
    if (word !== "") {
      return inBraces ? token("identifier", word.length, `identifier "${word}"`) : name(word);
    }
    if (character === '"' || character === "'" || character === "`") {
      const { value, end } = readQuoted(text, at);
      const shown = `string ${JSON.stringify(text.slice(at, end))}`;
      const found: Token = { kind: "string", text: value, shown, at };
      at = end;
      return found;
    }
    if (character === (inBraces ? "}" : "{")) {
      inBraces = !inBraces;
      return token(character, 1, `"${character}"`);
    }
    return inBraces ? insideBraces(character) : outsideBraces(character);
  };

  const insideBraces = (character: string): Token => {
    if (character === ",") {
      return token(",", 1, '","');
    }
    const operator = match(OPERATOR);
    if (operator !== "") {
      return token("operator", operator.length, `"${operator}"`);
    }
    if (character === "!") {
      const after = String.fromCodePoint(text.codePointAt(at + 1) ?? 0);
      throw new SelectorError(
        text,
        at,
        `unexpected character after '!' inside braces: ${quoteCharacter(after)}`,
      );
    }
    const what = character === "{" ? "left brace" : "character inside braces:";
    throw new SelectorError(text, at, `unexpected ${what} ${quoteCharacter(character)}`);
  };

  /** Any further token here is an error; only its description matters. */
  const outsideBraces = (character: string): Token => {
    const number = match(NUMBER);
    if (number !== "") {
      return token("other", number.length, `number "${number}"`);
    }
    if (/[-+*/%^<>=,()[\]@]/.test(character)) {
      return token("other", 1, `"${character}"`);
    }
    throw new SelectorError(text, at, `unexpected character: ${quoteCharacter(character)}`);
  };

  return next;
}

/** Like Go's `%q` for printable characters. */
function quoteCharacter(character: string): string {
  return `'${JSON.stringify(character).slice(1, -1).replace('\\"', '"')}'`;
}

/**
 * The parser of PromQL string literals: `"…"` and `'…'` with Go's escapes, and
 * `` `…` `` without escapes. Source: promql/parser/lex.go and
 * util/strutil/quote.go of Prometheus.
 */
interface Quoted {
  /** The literal's value. */
  readonly value: string;
  /** The index after the closing quote. */
  readonly end: number;
}

const SIMPLE: { readonly [letter: string]: string } = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\\": "\\",
};

/** Digits, base and the largest value of each kind of numeric escape. */
const NUMERIC = {
  octal: { digits: 3, base: 8, limit: 0xff, isByte: true },
  x: { digits: 2, base: 16, limit: 0xff, isByte: true },
  u: { digits: 4, base: 16, limit: 0x10ffff, isByte: false },
  U: { digits: 8, base: 16, limit: 0x10ffff, isByte: false },
} as const;

/**
 * Parses the literal whose opening quote is at `start`. Escapes can write bytes
 * that are not UTF-8. No label has such a value, so each becomes a lone
 * surrogate, which no label has either. Throws a SelectorError.
 */
function readQuoted(text: string, start: number): Quoted {
  const quote = text[start];
  const end = endOfLiteral(text, start);
  const inner = text.slice(start + 1, end);
  if (inner.includes("\uFFFD")) {
    throw new SelectorError(text, start, "invalid UTF-8 rune");
  }
  const value = quote === "`" || !inner.includes("\\") ? inner : readEscapes(text, start, end);
  return { value, end: end + 1 };
}

/** The index of the closing quote. */
function endOfLiteral(text: string, start: number): number {
  const quote = text[start];
  for (let at = start + 1; at < text.length; at += 1) {
    const character = text[at];
    if (character === quote) {
      return at;
    }
    if (quote !== "`" && character === "\n") {
      break;
    }
    if (quote !== "`" && character === "\\") {
      at += 1;
    }
  }
  const kind = quote === "`" ? "raw" : "quoted";
  throw new SelectorError(text, start, `unterminated ${kind} string`);
}

function readEscapes(text: string, start: number, end: number): string {
  const quote = text[start];
  const bytes: Buffer[] = [];
  let at = start + 1;
  while (at < end) {
    const backslash = text.indexOf("\\", at);
    const plainEnd = backslash === -1 || backslash > end ? end : backslash;
    bytes.push(Buffer.from(text.slice(at, plainEnd)));
    if (plainEnd === end) {
      break;
    }
    const letter = text[plainEnd + 1] ?? "";
    const simple = letter === quote ? letter : SIMPLE[letter];
    if (simple !== undefined) {
      bytes.push(Buffer.from(simple));
      at = plainEnd + 2;
    } else {
      const numeric = numericEscape(text, start, plainEnd + 1);
      bytes.push(numeric.bytes);
      at = numeric.end;
    }
  }
  return decode(Buffer.concat(bytes));
}

/** Parses a numeric escape; `letterAt` is the index of its letter, or of its first octal digit. */
function numericEscape(
  text: string,
  start: number,
  letterAt: number,
): { readonly bytes: Buffer; readonly end: number } {
  const letter = text[letterAt] ?? "";
  const kind = /[0-7]/.test(letter) ? "octal" : letter;
  if (kind !== "octal" && kind !== "x" && kind !== "u" && kind !== "U") {
    const shown = String.fromCodePoint(text.codePointAt(letterAt) ?? 0);
    throw new SelectorError(text, start, `unknown escape sequence ${unicodeName(shown)}`);
  }
  const { digits, base, limit, isByte } = NUMERIC[kind];
  const first = kind === "octal" ? letterAt : letterAt + 1;
  let code = 0;
  for (let at = first; at < first + digits; at += 1) {
    const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
    const digit = /^[0-9a-fA-F]$/.test(character) ? Number.parseInt(character, 16) : base;
    if (digit >= base) {
      const reason = `illegal character ${unicodeName(character)} in escape sequence`;
      throw new SelectorError(text, start, reason);
    }
    code = code * base + digit;
  }
  if (code > limit || (code >= 0xd800 && code < 0xe000)) {
    throw new SelectorError(text, start, "escape sequence is an invalid Unicode code point");
  }
  const bytes = isByte ? Buffer.of(code) : Buffer.from(String.fromCodePoint(code));
  return { bytes, end: first + digits };
}

/** Like Go's `%#U`. */
function unicodeName(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
  return `U+${code} '${character}'`;
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decode(bytes: Buffer): string {
  try {
    return strict.decode(bytes);
  } catch {
    return Array.from(bytes, (byte) =>
      String.fromCharCode(byte < 0x80 ? byte : 0xdc00 + byte),
    ).join("");
  }
}
