/** A recursive descent parser for the arithmetic in the initializers of constants. */

const TOKEN =
  /\s*(?:(0x[\da-f]+|\d[\d_]*(?:\.\d+)?)|("[^"]*"\.length)|([A-Za-z_]\w*)|(\*\*|[-+*/()]))/iy;

/**
 * The value of an initializer made of numbers, + - * / **, lengths of texts and
 * names that `lookup` knows; undefined for anything else.
 */
export function evaluate(
  text: string,
  lookup: (name: string) => number | undefined,
): number | undefined {
  const tokens: string[] = [];
  const source = text.replace(/ as const$/, "").trim();
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < source.length) {
    const found = TOKEN.exec(source);
    if (found === null) {
      return undefined;
    }
    tokens.push(found[0].trim());
  }
  const value = sum(tokens, lookup);
  return tokens.length === 0 && !Number.isNaN(value) ? value : undefined;
}

type Lookup = (name: string) => number | undefined;

function sum(tokens: string[], lookup: Lookup): number {
  let value = product(tokens, lookup);
  for (let operator = tokens[0]; operator === "+" || operator === "-"; operator = tokens[0]) {
    tokens.shift();
    const other = product(tokens, lookup);
    value = operator === "+" ? value + other : value - other;
  }
  return value;
}

function product(tokens: string[], lookup: Lookup): number {
  let value = power(tokens, lookup);
  for (let operator = tokens[0]; operator === "*" || operator === "/"; operator = tokens[0]) {
    tokens.shift();
    const other = power(tokens, lookup);
    value = operator === "*" ? value * other : value / other;
  }
  return value;
}

function power(tokens: string[], lookup: Lookup): number {
  const value = atom(tokens, lookup);
  if (tokens[0] !== "**") {
    return value;
  }
  tokens.shift();
  return value ** power(tokens, lookup);
}

/** NaN for what is no number. */
function atom(tokens: string[], lookup: Lookup): number {
  const token = tokens.shift() ?? "";
  if (token === "(") {
    const value = sum(tokens, lookup);
    return tokens.shift() === ")" ? value : Number.NaN;
  }
  if (token.startsWith('"')) {
    return token.length - '"".length'.length;
  }
  return /^\d/.test(token) ? Number(token.replaceAll("_", "")) : (lookup(token) ?? Number.NaN);
}
