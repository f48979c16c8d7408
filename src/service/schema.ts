/**
 * `/schema.json`: describes the endpoints of a service in the form that BentoML's
 * Python clients read before their first call. They read only `type`, `properties`,
 * `required` and `items`, and cannot follow references or choose between
 * alternatives, so every schema is flat.
 */
import type {
  EndpointManifest,
  FileArgument,
  FileSpec,
  JsonSchema,
  ServiceManifest,
} from "../protocol/manifest.ts";
import { flattenArguments, flattenSchema } from "./flatten.ts";
import { pathBelow } from "./mounts.ts";

/** The object of `/schema.json`. */
interface SchemaDocument {
  readonly name: string;
  readonly type: "service";
  readonly description?: string;
  readonly routes: readonly EndpointSchema[];
}

/** One endpoint in `/schema.json`. */
interface EndpointSchema {
  readonly name: string;
  /** Its path, such as `/summarize`. */
  readonly route: string;
  readonly is_task: boolean;
  readonly description?: string;
  /** The description again, under the name that clients use for help texts. */
  readonly doc?: string;
  readonly input: JsonSchema;
  /** Of a result that is streamed: one piece of it, with `is_stream: true`. */
  readonly output: JsonSchema;
}

/** Describes a service for clients that read `/schema.json`. */
export function schemaDocument(manifest: ServiceManifest): SchemaDocument {
  return {
    name: manifest.name,
    type: "service",
    ...(manifest.description ? { description: manifest.description } : {}),
    routes: manifest.endpoints.map((endpoint) => ({
      name: endpoint.name,
      route: pathBelow(endpoint),
      is_task: endpoint.kind === "task",
      ...(endpoint.description
        ? { description: endpoint.description, doc: endpoint.description }
        : {}),
      input: inputSchema(endpoint),
      output: { ...outputSchema(endpoint), ...(endpoint.stream && { is_stream: true }) },
    })),
  };
}

/**
 * The same for BentoML's own clients, where the service comes from there: as BentoML describes it,
 * with the types that its clients encode by.
 */
export function bentomlDocument(manifest: ServiceManifest): JsonSchema | undefined {
  const document = manifest.compat?.bentoml;
  if (document === undefined || !Array.isArray(document.routes)) {
    return undefined;
  }
  const routes = new Map(manifest.endpoints.map((each) => [each.name, pathBelow(each)]));
  return {
    ...document,
    routes: document.routes.map((described: JsonSchema) => ({
      ...described,
      // Of a method whose name is not in ASCII, the endpoint has another one.
      route: routes.get(String(described?.name)) ?? described?.route,
    })),
  };
}

/**
 * True when the result is sent as text: its schema accepts strings and
 * nothing else (not what is written as one, such as a date), or it is streamed as a text. Clients decide by `/schema.json` whether to parse an answer,
 * so the server and that document must ask the same function.
 */
export function resultIsText(endpoint: EndpointManifest): boolean {
  let isText = textResults.get(endpoint);
  if (isText === undefined) {
    isText = endpoint.stream
      ? endpoint.stream.pieces === "text"
      : !endpoint.outputFile && !endpoint.quoted && outputSchema(endpoint).type === "string";
    textResults.set(endpoint, isText);
  }
  return isText;
}

/** A cache per endpoint, because every response asks. */
const textResults = new WeakMap<EndpointManifest, boolean>();

function inputSchema(endpoint: EndpointManifest): JsonSchema {
  const schema = flattenArguments(endpoint.input);
  const properties: Record<string, unknown> = { ...schema.properties };
  for (const [name, file] of Object.entries(endpoint.files)) {
    properties[name] = fileArgumentSchema(file, properties[name]);
  }
  return { ...schema, properties };
}

function outputSchema(endpoint: EndpointManifest): JsonSchema {
  if (endpoint.outputFile) {
    return fileSchema(endpoint.outputFile);
  }
  const { schema, nullable } = flattenSchema(endpoint.output);
  const { type, ...untyped } = schema;
  return nullable && type === "string" ? untyped : schema;
}

function fileArgumentSchema(file: FileArgument, described: unknown): JsonSchema {
  const { title, description } = (described ?? {}) as JsonSchema;
  const annotations = {
    ...(title ? { title } : {}),
    ...(description ? { description } : {}),
  };
  if (!file.array) {
    return { ...fileSchema(file), ...annotations };
  }
  return {
    type: "array",
    items: fileSchema(file),
    ...(file.minItems === undefined ? {} : { minItems: file.minItems }),
    ...(file.maxItems === undefined ? {} : { maxItems: file.maxItems }),
    ...annotations,
  };
}

function fileSchema(file: FileSpec): JsonSchema {
  const [kind] = file.contentType?.split("/") ?? [];
  const format = kind === "image" || kind === "audio" || kind === "video" ? kind : "binary";
  return {
    type: "file",
    format,
    ...(file.contentType ? { content_type: file.contentType } : {}),
  };
}
