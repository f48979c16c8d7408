/**
 * The query parser of `/federate`, with Prometheus' rules: `+` is a space,
 * escapes have to be valid, and `;` is no separator. Source: url.ParseQuery of
 * Go.
 */

/** Query of `/federate`: what comes after would be more selectors than are allowed. */
const MAX_QUERY_CHARACTERS = 2_000_000;

/** All values of a parameter. Throws an Error that gives the reason. */
export function valuesOf(query: string, name: string): string[] {
  if (query.length > MAX_QUERY_CHARACTERS) {
    throw new Error(
      `the query has ${query.length} characters, and ${MAX_QUERY_CHARACTERS} are allowed`,
    );
  }
  return query
    .split("&")
    .filter((pair) => pair !== "")
    .map((pair) => {
      if (pair.includes(";")) {
        throw new Error("invalid semicolon separator in query");
      }
      const at = pair.indexOf("=");
      const key = at === -1 ? pair : pair.slice(0, at);
      return [decode(key), decode(at === -1 ? "" : pair.slice(at + 1))] as const;
    })
    .filter(([key]) => key === name)
    .map(([, value]) => value);
}

function decode(text: string): string {
  const wrong = /%(?![0-9a-fA-F]{2}).{0,2}/s.exec(text);
  if (wrong) {
    throw new Error(`invalid URL escape ${JSON.stringify(wrong[0])}`);
  }
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw new Error("invalid UTF-8 in query");
  }
}
