/**
 * The parser of instant vector selectors: `name{label="value",
 * other=~"pattern"}` and nothing else of PromQL. It accepts what Prometheus
 * accepts for `match[]`; a test compares more than 500 valid and invalid
 * selectors with Prometheus itself and with its grammar for editors.
 *
 * That grammar (`@prometheus-io/lezer-promql`) would be an alternative. But it
 * recovers from errors, as an editor needs, so it neither explains them nor
 * looks into strings; it accepts expressions that are not selectors and refuses
 * some that are (`offset{a="b"}`). The grammar of a selector is one line:
 *
 *     [name] [ "{" [ matcher { "," matcher } [","] ] "}" ]   and one of both
 *     matcher = (label | string) operator string | string
 *
 * A string alone is the name of the metric, as in Prometheus since 3.0.
 */
import { SelectorError } from "./error.ts";
import { type Lexer, lex, type Token } from "./lexer.ts";
import { compilePattern, type Pattern } from "./pattern.ts";

type Operator = "=" | "!=" | "=~" | "!~";

/** One condition on a label. An absent label counts as the empty string. */
export interface Matcher {
  readonly label: string;
  readonly operator: Operator;
  readonly value: string;
  /** Whether a value of the label fulfils the condition. */
  readonly matches: Pattern;
  /** The cost of an evaluation: the size of the regex's program, 0 for a comparison. */
  readonly cost: number;
}

/** A conjunction of matchers; without a matcher it selects nothing. */
export interface Selector {
  readonly matchers: readonly Matcher[];
}

/** The label that holds the name of the metric. */
export const NAME_LABEL = "__name__";

/** One selector. */
const MAX_SELECTOR_CHARACTERS = 10_000;

/** What the regexes of one selector may cost together, in steps of their programs. */
const MAX_SELECTOR_COST_STEPS = 4_000;

/** Parses a selector. Throws a SelectorError that says where it is invalid, and why. */
export function parseSelector(text: string): Selector {
  if (text.length > MAX_SELECTOR_CHARACTERS) {
    const reason = `a selector may have ${MAX_SELECTOR_CHARACTERS} characters, this one has ${text.length}`;
    throw new SelectorError(text, 0, reason);
  }
  const next = lex(text);
  let token = next();
  const matchers: Matcher[] = [];
  let named: Matcher | undefined;
  if (token.kind === "identifier") {
    named = equals(NAME_LABEL, token.text);
    token = next();
  }
  if (token.kind === "{") {
    matchers.push(...labelMatchers(text, next));
    token = next();
  } else if (named === undefined) {
    throw unexpected(text, token);
  }
  if (token.kind !== "end") {
    throw unexpected(text, token);
  }
  return { matchers: named ? [named, ...matchers] : matchers };
}

/** Parses the matchers after the left brace, up to the right one. */
function labelMatchers(text: string, next: Lexer): Matcher[] {
  const matchers: Matcher[] = [];
  let cost = 0;
  let token = next();
  while (token.kind !== "}") {
    if (token.kind !== "identifier" && token.kind !== "string") {
      throw unexpected(text, token, 'identifier or "}"');
    }
    const label = token;
    token = next();
    if (token.kind === "operator") {
      const operator = token.text as Operator;
      const value = next();
      if (value.kind !== "string") {
        throw unexpected(text, value, "string");
      }
      const made = matcher(text, label, { operator, value: value.text });
      cost += made.cost;
      if (cost > MAX_SELECTOR_COST_STEPS) {
        throw new SelectorError(
          text,
          label.at,
          "the regexps of this selector are too large together",
        );
      }
      matchers.push(made);
      token = next();
    } else if (label.kind === "string") {
      matchers.push(equals(NAME_LABEL, label.text));
    } else {
      throw unexpected(text, token, "label matching operator");
    }
    if (token.kind === ",") {
      token = next();
    } else if (token.kind !== "}") {
      throw unexpected(text, token, '"," or "}"');
    }
  }
  return matchers;
}

function matcher(
  text: string,
  { text: label, at }: Token,
  { operator, value }: { operator: Operator; value: string },
): Matcher {
  if (operator === "=") {
    return equals(label, value);
  }
  if (operator === "!=") {
    return { label, operator, value, matches: (actual) => actual !== value, cost: 0 };
  }
  try {
    const { matches, cost } = compilePattern(value);
    return operator === "=~"
      ? { label, operator, value, matches, cost }
      : { label, operator, value, matches: (actual) => !matches(actual), cost };
  } catch (err) {
    throw new SelectorError(text, at, err instanceof Error ? err.message : String(err));
  }
}

/** Returns an equality matcher. */
export function equals(label: string, value: string): Matcher {
  return { label, operator: "=", value, matches: (actual) => actual === value, cost: 0 };
}

function unexpected(text: string, { shown, at }: Token, expected?: string): SelectorError {
  const where = expected === undefined ? "" : ` in label matching, expected ${expected}`;
  return new SelectorError(text, at, `unexpected ${shown}${where}`);
}
