/** The arguments in a form: what stands in its fields, and the values that are read from it. */
import { parseExactly } from "../../../../collections/exact-json.ts";
import type { Argument, PlaygroundEndpoint } from "./description.ts";
import { problemOf } from "./schema.ts";

/**
 * What stands in the field of an argument: a text, the number of a choice, whether a switch is on,
 * files; undefined is a number that the browser cannot read.
 */
export type Entry = string | boolean | readonly File[] | undefined;

/** Values by the names of arguments; a number is as it was written. */
type ArgumentValues = Readonly<Record<string, unknown>>;

export interface ArgumentsForm {
  readonly entries: Readonly<Record<string, Entry>>;
  /** All arguments but files as JSON, in the place of their fields. */
  readonly json?: string | undefined;
  /** What is wrong, by the name of the argument; with `JSON_PROBLEM`, of the JSON. */
  readonly problems: Readonly<Record<string, string>>;
}

/** Names the text of the form as JSON among the problems: no argument is called so. */
export const JSON_PROBLEM = "";

export interface GivenArguments {
  readonly values: ArgumentValues;
  readonly files: Readonly<Record<string, readonly File[]>>;
}

type FieldKind = "file" | "choice" | "switch" | "number" | "line" | "text" | "json";

/** Texts that are short. */
const ONE_LINE = /^(?:date|date-time|duration|email|hostname|ipv4|ipv6|time|uri|uuid)$/;
/** A text that may be longer than this has several lines. */
const MAX_LINE_CHARS = 100;

export function fieldKindOf({ file, schema }: Argument): FieldKind {
  if (file) {
    return "file";
  }
  switch (schema.enum ? "choice" : schema.type) {
    case "choice":
      return "choice";
    case "boolean":
      return typeof schema.default === "boolean" ? "switch" : "choice";
    case "integer":
    case "number":
      return "number";
    case "string": {
      const isShort = (schema.maxLength ?? Number.POSITIVE_INFINITY) <= MAX_LINE_CHARS;
      return isShort || ONE_LINE.test(schema.format ?? "") ? "line" : "text";
    }
    default:
      return "json";
  }
}

/** What one may choose from. */
export const choicesOf = ({ schema }: Argument): readonly unknown[] => schema.enum ?? [true, false];

/** A form that can be sent as it is, but for files: the defaults, and examples of what is required. */
export function firstForm(endpoint: PlaygroundEndpoint): ArgumentsForm {
  const values = endpoint.arguments.map((argument) => [
    argument.name,
    firstValue(endpoint, argument),
  ]);
  return { entries: entriesOf(endpoint, Object.fromEntries(values)), problems: {} };
}

/** What is optional has an example only where its author wrote one. */
function firstValue(
  { example }: PlaygroundEndpoint,
  { name, schema, required }: Argument,
): unknown {
  const { default: usual, examples } = schema;
  const written = Array.isArray(examples) ? examples[0] : undefined;
  return usual ?? written ?? (required ? example[name] : undefined);
}

/** A form with these values; its files stay. */
export function withValues(
  endpoint: PlaygroundEndpoint,
  form: ArgumentsForm,
  values: ArgumentValues,
): ArgumentsForm {
  return {
    entries: { ...form.entries, ...entriesOf(endpoint, values) },
    ...(form.json !== undefined && { json: JSON.stringify(values, null, 2) }),
    problems: {},
  };
}

function entriesOf(
  endpoint: PlaygroundEndpoint,
  values: ArgumentValues,
): Readonly<Record<string, Entry>> {
  const fields = endpoint.arguments.filter(({ file }) => !file);
  return Object.fromEntries(fields.map((one) => [one.name, entryOf(one, values[one.name])]));
}

function entryOf(argument: Argument, value: unknown): Entry {
  switch (fieldKindOf(argument)) {
    case "choice": {
      const index = choicesOf(argument).indexOf(value);
      return index < 0 ? "" : String(index);
    }
    case "switch":
      return Boolean(value ?? argument.schema.default);
    case "number":
      return value === undefined || value === null ? "" : JSON.stringify(value);
    case "json":
      return value === undefined ? "" : JSON.stringify(value, null, 2);
    default:
      return String(value ?? "");
  }
}

/** The same arguments as JSON, or in fields; with the problem of JSON that cannot be read. */
export function switchedForm(endpoint: PlaygroundEndpoint, form: ArgumentsForm): ArgumentsForm {
  const { values, problems } = readArguments(endpoint, form);
  if (form.json === undefined) {
    return { ...form, json: JSON.stringify(values, null, 2), problems: {} };
  }
  return problems[JSON_PROBLEM] === undefined
    ? withValues(endpoint, { ...form, json: undefined }, values)
    : { ...form, problems };
}

/** What can be read of a form, and what is wrong with the rest. */
export function readArguments(
  endpoint: PlaygroundEndpoint,
  { entries, json }: ArgumentsForm,
): GivenArguments & Pick<ArgumentsForm, "problems"> {
  const values: Record<string, unknown> = {};
  const files: Record<string, readonly File[]> = {};
  const problems: Record<string, string> = {};
  const attempt = (name: string, work: () => void): void => {
    try {
      work();
    } catch (err) {
      problems[name] = err instanceof Error ? err.message : String(err);
    }
  };
  if (json !== undefined) {
    attempt(JSON_PROBLEM, () => Object.assign(values, parseObject(json)));
  }
  for (const argument of endpoint.arguments) {
    const { name, file } = argument;
    if (json === undefined || file) {
      attempt(name, () => {
        const value = checkedValue(endpoint, argument, entries[name]);
        if (value !== undefined) {
          Object.assign(file ? files : values, { [name]: value });
        }
      });
    }
  }
  return { values, files, problems };
}

/** Undefined where it is left out. Throws an error that says what is wrong. */
function checkedValue(endpoint: PlaygroundEndpoint, argument: Argument, entry: Entry): unknown {
  const value = readEntry(argument, entry);
  if (value === undefined) {
    if (argument.required) {
      throw new Error("is required");
    }
    return undefined;
  }
  const problem = argument.file ? undefined : problemOf(endpoint.document, argument.schema, value);
  if (problem !== undefined) {
    throw new Error(problem);
  }
  return value;
}

function readEntry(argument: Argument, entry: Entry): unknown {
  const kind = fieldKindOf(argument);
  if (kind === "switch") {
    return entry;
  }
  if (kind === "file") {
    return (entry as readonly File[] | undefined)?.length ? entry : undefined;
  }
  if (entry === undefined) {
    throw new Error("must be a number");
  }
  if (entry === "") {
    return (kind === "text" || kind === "line") && argument.required ? "" : undefined;
  }
  switch (kind) {
    case "choice":
      return choicesOf(argument)[Number(entry)];
    case "number":
      return exactNumber(String(entry));
    case "json":
      return parseJson(String(entry));
    default:
      return entry;
  }
}

/** As it was typed; what people may type and JSON does not have, such as `.5`, as a double. */
function exactNumber(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    return Number(text);
  }
}

/** Empty text is undefined. */
function parseJson(text: string): unknown {
  try {
    return text.trim() === "" ? undefined : parseExactly(text);
  } catch (err) {
    throw new Error(`is not JSON: ${err instanceof Error ? err.message : err}`);
  }
}

function parseObject(text: string): object {
  const value = parseJson(text) ?? {};
  if (typeof value !== "object" || Array.isArray(value)) {
    throw new Error("must be a JSON object of arguments");
  }
  return value;
}
