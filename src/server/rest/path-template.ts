/**
 * The parser of `google.api.http` path templates, by the grammar in
 * `google/api/http.proto`:
 *
 *     Template = "/" Segments [ Verb ] ;
 *     Segments = Segment { "/" Segment } ;
 *     Segment  = "*" | "**" | LITERAL | Variable ;
 *     Variable = "{" FieldPath [ "=" Segments ] "}" ;
 *     FieldPath = IDENT { "." IDENT } ;
 *     Verb     = ":" LITERAL ;
 */

/** One segment of a template. */
type Segment =
  | { readonly kind: "literal"; readonly text: string }
  /** `*`: one segment that is not empty. */
  | { readonly kind: "one" }
  /** `**`: all remaining segments, or none. */
  | { readonly kind: "rest" };

/** A part of the path that sets a field of the request. */
export interface Variable {
  /** Names of the fields, from the request message inwards. */
  readonly path: readonly string[];
  /** Index of its first segment. */
  readonly start: number;
  /** Index after its last segment; undefined if it extends to the end of the path. */
  readonly end: number | undefined;
  /** True for a variable of several segments, in which `%2F` stays encoded. */
  readonly multiple: boolean;
}

export interface Template {
  readonly segments: readonly Segment[];
  readonly variables: readonly Variable[];
  readonly verb: string | undefined;
}

/** Parses a template. Throws an error that names the template, the position and what is expected there. */
export function parseTemplate(text: string): Template {
  return new Parser(text).template();
}

const IDENT = /[A-Za-z_][A-Za-z0-9_]*/y;
/** Characters of a path segment (RFC 3986 `pchar`) without `:` and `*`, which the grammar uses. */
const LITERAL = /(?:[A-Za-z0-9\-._~!$&'()+,;=@]|%[0-9A-Fa-f]{2})+/y;

class Parser {
  readonly #text: string;
  #at = 0;
  readonly #segments: Segment[] = [];
  readonly #variables: Variable[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  template(): Template {
    this.#expect("/");
    this.#segmentList(true);
    const verb = this.#take(":") ? this.#match(LITERAL, "a verb") : undefined;
    if (this.#at < this.#text.length) {
      throw this.#error('"/", ":verb" or the end');
    }
    const rest = this.#segments.findIndex((segment) => segment.kind === "rest");
    if (rest !== -1 && rest !== this.#segments.length - 1) {
      throw new Error(`path template "${this.#text}": "**" must be the last segment`);
    }
    return { segments: this.#segments, variables: this.#variables, verb };
  }

  #segmentList(variablesAllowed: boolean): void {
    do {
      this.#segment(variablesAllowed);
    } while (this.#take("/"));
  }

  #segment(variablesAllowed: boolean): void {
    if (this.#take("**")) {
      this.#segments.push({ kind: "rest" });
    } else if (this.#take("*")) {
      this.#segments.push({ kind: "one" });
    } else if (variablesAllowed && this.#take("{")) {
      this.#variable();
    } else {
      const expected = variablesAllowed ? 'a literal, "*", "**" or "{"' : 'a literal, "*" or "**"';
      const literal = this.#match(LITERAL, expected);
      this.#segments.push({ kind: "literal", text: this.#decode(literal) });
    }
  }

  #variable(): void {
    const start = this.#segments.length;
    const path = [this.#match(IDENT, "the name of a field")];
    while (this.#take(".")) {
      path.push(this.#match(IDENT, "the name of a field"));
    }
    if (this.#take("=")) {
      this.#segmentList(false);
    } else {
      this.#segments.push({ kind: "one" });
    }
    this.#expect("}");
    const name = path.join(".");
    if (this.#variables.some((other) => other.path.join(".") === name)) {
      throw new Error(`path template "${this.#text}": "${name}" is bound twice`);
    }
    const count = this.#segments.length - start;
    const open = this.#segments.at(-1)?.kind === "rest";
    this.#variables.push({
      path,
      start,
      end: open ? undefined : this.#segments.length,
      multiple: open || count > 1,
    });
  }

  #take(token: string): boolean {
    const found = this.#text.startsWith(token, this.#at);
    if (found) {
      this.#at += token.length;
    }
    return found;
  }

  #expect(token: string): void {
    if (!this.#take(token)) {
      throw this.#error(`"${token}"`);
    }
  }

  #match(pattern: RegExp, expected: string): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found === undefined) {
      throw this.#error(expected);
    }
    this.#at += found.length;
    return found;
  }

  #decode(literal: string): string {
    try {
      return decodeURIComponent(literal);
    } catch {
      throw new Error(`path template "${this.#text}": "${literal}" is not valid UTF-8`);
    }
  }

  #error(expected: string): Error {
    return new Error(`path template "${this.#text}": expected ${expected} at ${this.#at}`);
  }
}
