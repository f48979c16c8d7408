/** The arguments of a task in a line, by their names. The platform gives the beginning of their JSON, which may be cut. */

/** Characters of a value. */
const MAX_VALUE_CHARACTERS = 40;

/** Such as `length: 7, texts: 200 items`; a value that is cut ends with `…`. */
export function previewOf(json: string): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch {
    return beginningOf(json);
  }
  return isObject(parsed) ? namesWith(Object.entries(parsed)) : shortened(json);
}

const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const namesWith = (entries: readonly (readonly [string, unknown])[]): string =>
  entries.map(([name, value]) => `${name}: ${valueText(value)}`).join(", ");

function valueText(value: unknown): string {
  if (typeof value === "string") {
    return shortened(value);
  }
  const json = JSON.stringify(value);
  if (json.length <= MAX_VALUE_CHARACTERS) {
    return json;
  }
  return Array.isArray(value)
    ? `${value.length} items`
    : `${Object.keys(value as object).length} fields`;
}

const shortened = (text: string): string =>
  text.length > MAX_VALUE_CHARACTERS ? `${text.slice(0, MAX_VALUE_CHARACTERS)}…` : text;

/** Of JSON that ends too early: the members that are whole, and the name of the last one with how its value begins. */
function beginningOf(json: string): string {
  for (let at = json.lastIndexOf(","); at > 0; at = json.lastIndexOf(",", at - 1)) {
    let whole: unknown;
    try {
      whole = JSON.parse(`${json.slice(0, at)}}`);
    } catch {
      continue;
    }
    if (isObject(whole)) {
      return `${namesWith(Object.entries(whole))}, ${memberOf(json.slice(at + 1))}`;
    }
  }
  return memberOf(json.replace(/^\{/, ""));
}

/** `"text":"A short` as `text: A short…`; the brackets of a list stay: `"texts":["A short` as `texts: ["A short…`. */
function memberOf(text: string): string {
  const [, name, value = ""] = /^\s*"((?:[^"\\]|\\.)*)"\s*:\s*"?(.*)$/s.exec(text) ?? [];
  return name === undefined ? `${text}…` : `${name}: ${value.replaceAll(/(?:\\[nrt])+/g, " ")}…`;
}
