/** Renders an OpenAPI document as Markdown: each operation with its parameters, its answers and a curl call. */
import type { JsonSchema } from "../../src/protocol/manifest.ts";
import { curlOf } from "./curl.ts";
import type { Content, Document, Operation, Place } from "./document.ts";
import { anchorOf, resolve, typeOf } from "./types.ts";

/** All operations of a document, grouped by tag; headings are one level below `level`. */
export function operations(document: Document, level: string): string {
  return document.tags
    .map(({ name, description = "" }) => {
      const places = placesOf(document, name).map((place) => operationText(place, `${level}##`));
      return [`${level}# ${name}`, description, ...places]
        .filter((part) => part !== "")
        .join("\n\n");
    })
    .join("\n\n");
}

/** The schemas that a text links to, directly or through others, each as a table of its fields. */
export function schemas(document: Document, text: string, level: string): string {
  const all = Object.entries((document.components.schemas ?? {}) as Record<string, JsonSchema>);
  const texts = all.map(([name, schema]) => [name, schemaText(document, name, schema, level)]);
  const reached = new Set<string>();
  const reach = (from: string): void => {
    for (const [name = "", own = ""] of texts) {
      if (!reached.has(name) && from.includes(`(#${anchorOf(name)})`)) {
        reached.add(name);
        reach(own);
      }
    }
  };
  reach(text);
  return texts
    .filter(([name = ""]) => reached.has(name))
    .map(([, own]) => own)
    .join("\n\n");
}

function schemaText(document: Document, name: string, schema: JsonSchema, level: string): string {
  const { description = "" } = schema;
  return [`${level} ${name}`, String(description), fieldsTable(document, schema)]
    .filter((part) => part !== "")
    .join("\n\n");
}

/** An operation with two methods becomes one place. */
function placesOf(document: Document, tag: string): Place[] {
  return Object.entries(document.paths).flatMap(([path, byMethod]) => {
    const own = Object.entries(byMethod).filter(([, { tags }]) => tags[0] === tag);
    const same = Map.groupBy(own, ([, { summary }]) => summary);
    return [...same.values()].flatMap((some) => {
      const operation = some[0]?.[1];
      const methods = some.map(([method]) => method.toUpperCase());
      return operation ? [{ document, path, methods, operation }] : [];
    });
  });
}

function operationText(place: Place, level: string): string {
  const { document, path, methods, operation } = place;
  const { summary, description = "", parameters = [], requestBody, responses } = operation;
  const callers = operation["x-callers"];
  return [
    `${level} ${methods.join(", ")} \`${path}\``,
    [`${summary}.`, description].filter((part) => part !== "").join(" "),
    callers === undefined
      ? ""
      : `Who may call: ${callers.charAt(0).toLowerCase()}${callers.slice(1)}`,
    parametersTable(document, parameters),
    ...Object.entries(requestBody?.content ?? {}).map(([type, { schema }]) =>
      bodyText(document, type, schema),
    ),
    answersTable(document, responses),
    `\`\`\`sh\n${curlOf(place)}\n\`\`\``,
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

function parametersTable(document: Document, parameters: readonly JsonSchema[]): string {
  const rows = parameters
    .map((parameter) => resolve(document, parameter))
    .map(({ name, in: place, required, description, schema }) => [
      `\`${name}\`${required ? ", required" : ""}`,
      String(place),
      typeOf(document, schema as JsonSchema),
      String(description ?? ""),
    ]);
  return table(["parameter", "in", "type", ""], rows);
}

function bodyText(document: Document, type: string, schema: JsonSchema): string {
  const whole = resolve(document, schema);
  const fields = fieldsTable(document, whole);
  return fields === ""
    ? `Body: \`${type}\`, ${typeOf(document, whole)}.`
    : `Body: \`${type}\`\n\n${fields}`;
}

function fieldsTable(document: Document, { properties = {}, required = [] }: JsonSchema): string {
  const rows = Object.entries(properties as { [name: string]: JsonSchema }).map(([name, value]) => {
    const mark = (required as string[]).includes(name) ? ", required" : "";
    const described = value.description ?? resolve(document, value).description ?? "";
    return [`\`${name}\`${mark}`, typeOf(document, value), String(described)];
  });
  return table(["field", "type", ""], rows);
}

/** Describes successful answers; for errors lists the reasons only, which have a table of their own. */
function answersTable(document: Document, responses: Operation["responses"]): string {
  const rows = Object.entries(responses)
    .filter(([status]) => status !== "default")
    .map(([status, response]) => {
      const {
        description,
        content = {},
        headers = {},
      } = {
        ...resolve(document, response),
        ...response,
      };
      const [, reasons] = String(description).split("Reasons: ");
      if (reasons !== undefined) {
        return [status, (reasons.match(/\w+/g) ?? []).map((code) => `\`${code}\``).join(", ")];
      }
      const bodies = Object.entries(content as { [type: string]: Content }).map(
        ([type, { schema }]) => `\`${type}\`: ${typeOf(document, schema)}.`,
      );
      const names = Object.keys(headers as object).map((name) => `\`${name}\``);
      const sent = names.length > 0 ? [`Headers: ${names.join(", ")}.`] : [];
      return [status, [String(description), ...bodies, ...sent].join(" ")];
    });
  return table(["status", "answer, or reasons"], rows);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) {
    return "";
  }
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replace(/\s*\n+\s*/g, " ")).join(" | ")} |`;
  return [line(head), `|${"---|".repeat(head.length)}`, ...rows.map(line)].join("\n");
}
