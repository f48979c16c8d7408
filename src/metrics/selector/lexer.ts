/** The lexer of instant vector selectors, like promql/parser/lex.go of Prometheus. */
import { SelectorError } from "./error.ts";
import { readQuoted } from "./quoted.ts";

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
