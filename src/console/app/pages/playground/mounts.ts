/** The mounted servers of a deployment, and what they say of their operations. */
import { BEARER, lines, quote } from "../../ui/shell-command.ts";
import type { DescriptionDocuments } from "./description.ts";
import { type FormSchema, plainSchema } from "./schema.ts";
import type { PlaygroundTarget } from "./target.ts";

export interface PlaygroundMount {
  /** Where it is, such as `/ui`; no endpoint has such a name. */
  readonly path: string;
  readonly description: string;
  readonly operations: readonly MountOperation[];
}

export interface MountOperation {
  readonly method: string;
  readonly path: string;
  readonly summary: string;
  readonly operation: ToldOperation;
}

/** An operation of OpenAPI 3.1, as far as it is read here. */
interface ToldOperation {
  readonly tags?: readonly string[];
  readonly summary?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Body;
}

interface Parameter {
  readonly $ref?: string;
  readonly name?: string;
  readonly in?: string;
  readonly required?: boolean;
  readonly schema?: FormSchema;
  readonly example?: unknown;
}

interface Body {
  readonly $ref?: string;
  readonly content?: Readonly<
    Record<string, { readonly schema?: FormSchema; readonly example?: unknown }>
  >;
}

type PathItem = Readonly<Record<string, unknown>>;

const METHODS = ["get", "head", "post", "put", "patch", "delete", "options"];

export function readMounts({ tags = [], paths }: DescriptionDocuments["docs"]): PlaygroundMount[] {
  return tags.flatMap(({ name, description = "", "x-tessera-mount": path }) =>
    path === undefined ? [] : [{ path, description, operations: operationsOf(name, paths) }],
  );
}

function operationsOf(tag: string, paths: Readonly<Record<string, object>>): MountOperation[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = (item as PathItem)[method] as ToldOperation | undefined;
      const { parameters = [] } = item as { readonly parameters?: readonly Parameter[] };
      if (operation?.tags?.includes(tag) !== true) {
        return [];
      }
      const all = { ...operation, parameters: [...parameters, ...(operation.parameters ?? [])] };
      const { summary = "" } = operation;
      return [{ method: method.toUpperCase(), path, summary, operation: all }];
    }),
  );
}

/** The request of an operation in a shell, with examples for what is required. */
export function curlOf(
  docs: object,
  target: Pick<PlaygroundTarget, "url" | "needsToken">,
  place: Pick<MountOperation, "method" | "path" | "operation">,
): string {
  try {
    return describedCurl(docs, target, place);
  } catch {
    // What a server says of an operation may be wrong in any way.
    return describedCurl(docs, target, { ...place, operation: {} });
  }
}

function describedCurl(
  docs: object,
  { url, needsToken }: Parameters<typeof curlOf>[1],
  { method, path, operation }: Parameters<typeof curlOf>[2],
): string {
  const parameters = (operation.parameters ?? []).map(
    (each) => plainSchema(docs, each as FormSchema) as Parameter,
  );
  const sampleFor = (parameter: Parameter | undefined): string => {
    const { name = "", schema = {}, example } = parameter ?? {};
    const value = example ?? sampleOf(docs, schema, name);
    return typeof value === "object" ? JSON.stringify(value) : String(value);
  };
  const filled = path.replace(/\{([^{}]*)\}/g, (_, name: string) => {
    const parameter = parameters.find((one) => one.name === name && one.in === "path");
    return encodeURIComponent(sampleFor(parameter ?? { name }));
  });
  const required = parameters.filter((each) => each.required === true);
  const query = required
    .filter((each) => each.in === "query")
    .map((each) => `${encodeURIComponent(each.name ?? "")}=${encodeURIComponent(sampleFor(each))}`);
  const address = new URL(url).origin + filled + (query.length > 0 ? `?${query.join("&")}` : "");
  const verb = method === "GET" ? "" : method === "HEAD" ? "--head " : `-X ${method} `;
  return lines(
    `curl ${verb}${quote(address)}`,
    needsToken ? BEARER : "",
    ...required
      .filter((each) => each.in === "header")
      .map((each) => `-H ${quote(`${each.name}: ${sampleFor(each)}`)}`),
    ...bodyOf(docs, operation.requestBody),
  );
}

function bodyOf(docs: object, given: Body | undefined): string[] {
  const { content = {} } =
    given === undefined ? {} : (plainSchema(docs, given as FormSchema) as Body);
  const [type, media] = Object.entries(content).find(([name]) => /[/+]json\b/.test(name)) ?? [];
  if (type !== undefined && media !== undefined) {
    const value = media.example ?? sampleOf(docs, media.schema ?? {}, "");
    return [`-H ${quote(`content-type: ${type}`)}`, `-d ${quote(JSON.stringify(value))}`];
  }
  const [other] = Object.keys(content);
  if (other === undefined) {
    return [];
  }
  return other === "multipart/form-data"
    ? ["-F 'name=@file'"]
    : [`-H ${quote(`content-type: ${other}`)}`, "--data-binary @file"];
}

/** Schemas within each other that an example shows: they may contain themselves. */
const MAX_SAMPLE_DEPTH = 5;

/** A value of a schema with what is required of it; `name` stands for a text. */
function sampleOf(docs: object, given: FormSchema, name: string, depth = 0): unknown {
  const schema = plainSchema(docs, given);
  const { examples, type } = schema;
  const said = [
    ...(Array.isArray(examples) ? examples : []),
    schema.default,
    ...(schema.enum ?? []),
  ];
  const found = said.find((value) => value !== undefined && value !== null);
  if (found !== undefined) {
    return found;
  }
  switch (Array.isArray(type) ? type[0] : type) {
    case "integer":
    case "number":
      return numberOf(schema);
    case "boolean":
      return true;
    case "array":
      return depth < MAX_SAMPLE_DEPTH && schema.items
        ? [sampleOf(docs, schema.items, name, depth + 1)]
        : [];
    case "string":
      return name || "text";
    default: {
      const { properties, required = [] } = schema;
      if (properties === undefined) {
        return name || {};
      }
      const members = depth < MAX_SAMPLE_DEPTH ? required : [];
      return Object.fromEntries(
        members.map((each) => [each, sampleOf(docs, properties[each] ?? {}, each, depth + 1)]),
      );
    }
  }
}

/** 1, or what is nearest to it within the bounds. */
function numberOf({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: FormSchema): number {
  const least = minimum ?? (exclusiveMinimum ?? Number.NEGATIVE_INFINITY) + 1;
  const most = maximum ?? (exclusiveMaximum ?? Number.POSITIVE_INFINITY) - 1;
  return least > most ? (least + most) / 2 : Math.max(least, Math.min(most, 1));
}
