/** The code generator for typed clients: TypeScript from a deployment's `/schema.json`. */
import { type FlatSchema, factsOf, type SchemaRoute, type ServiceSchema } from "./schema.ts";

/**
 * Returns the source of the module: a type for the service, and `createClient`. It imports the
 * client from `clientModule`, which is this package's or `tessera-platform-client`.
 */
export function clientSource(
  schema: ServiceSchema,
  clientModule = "tessera-platform/client",
): string {
  const type = typeName(schema.name);
  const routes = schema.routes.filter(({ name }) => /^[A-Za-z][\w-]*$/.test(name));
  return `/**
 * The client of ${inComment(schema.name)}, written by \`tessera client generate\`. When the
 * service has changed, generate it again instead of changing it here.
 */
import {
  createClient as connect,
  type DeploymentClient,
  type DeploymentClientOptions,
  type EndpointTypes,
} from "${clientModule}";

${doc(schema.description, "")}export interface ${type} {
${routes.map(member).join("\n")}
}

const endpoints = {
${routes.map((route) => `  ${key(route.name)}: ${JSON.stringify(factsOf(route))},`).join("\n")}
} as const;

/** Connects to a deployment of the service. */
export function createClient(
  options: Omit<DeploymentClientOptions, "endpoints">,
): DeploymentClient<${type}> {
  return connect<${type}>({ ...options, endpoints });
}
`;
}

function member(route: SchemaRoute): string {
  const { name, description, input, output, is_task: isTask } = route;
  const whole = output.type === "file" ? "File" : typeOf(output, RESULT);
  const piece = output.type === "file" ? "Uint8Array" : whole;
  const result = output.is_stream ? `AsyncIterable<${piece}>` : whole;
  return `${doc(description, "  ")}  readonly ${key(name)}: EndpointTypes<
    "${isTask ? "task" : "api"}",
    ${typeOf(input, ARGUMENT)},
    ${result}
  >;`;
}

/**
 * Depth to which types are generated of a schema: deep enough for any value that somebody
 * wrote a schema for.
 */
export const MAX_SCHEMA_DEPTH = 32;

/** Where a type stands. */
interface Place {
  readonly indent: string;
  readonly depth: number;
  /** `"readonly "` for arguments, which callers may have as such; results are theirs to change. */
  readonly readonly: "readonly " | "";
}

const ARGUMENT: Place = { indent: "    ", depth: 0, readonly: "readonly " };
const RESULT: Place = { indent: "    ", depth: 0, readonly: "" };

function typeOf(schema: FlatSchema | undefined, place: Place): string {
  if (schema === undefined || place.depth > MAX_SCHEMA_DEPTH) {
    return "unknown";
  }
  if (schema.const !== undefined) {
    return literal(schema.const);
  }
  if (Array.isArray(schema.enum) && schema.enum.length > 0) {
    return schema.enum.map(literal).join(" | ");
  }
  const types = Array.isArray(schema.type) ? schema.type : [schema.type];
  return types.map((type) => typeNamed(type, schema, place)).join(" | ");
}

function typeNamed(type: unknown, schema: FlatSchema, place: Place): string {
  switch (type) {
    case "string":
    case "boolean":
    case "null":
      return type;
    case "number":
    case "integer":
      return "number";
    case "file":
      return "Blob";
    case "array": {
      const item = typeOf(schema.items, { ...place, depth: place.depth + 1 });
      return `${place.readonly}${/[ |]/.test(item) ? `(${item})` : item}[]`;
    }
    case "object":
      return objectType(schema, place);
    default:
      return "unknown";
  }
}

function objectType(schema: FlatSchema, place: Place): string {
  const { properties = {}, required = [], additionalProperties } = schema;
  const inner = { ...place, indent: `${place.indent}  `, depth: place.depth + 1 };
  const members = Object.entries(properties).map(([name, property]) => {
    const optional = required.includes(name) ? "" : "?";
    const declared = `${place.readonly}${key(name)}${optional}: ${typeOf(property, inner)};`;
    return `${doc(property.description, inner.indent)}${inner.indent}${declared}`;
  });
  if (members.length > 0) {
    return `{\n${members.join("\n")}\n${place.indent}}`;
  }
  const record = `Record<string, ${valueType(additionalProperties, place)}>`;
  return place.readonly ? `Readonly<${record}>` : record;
}

function valueType(additional: FlatSchema["additionalProperties"], place: Place): string {
  if (typeof additional === "object") {
    return typeOf(additional, { ...place, depth: place.depth + 1 });
  }
  return additional === false ? "never" : "unknown";
}

function literal(value: unknown): string {
  return ["string", "number", "boolean"].includes(typeof value) || value === null
    ? JSON.stringify(value)
    : "unknown";
}

function key(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
}

function typeName(name: string): string {
  const words = name.split(/[^A-Za-z0-9]+/).filter((word) => word !== "");
  const joined = words.map((word) => `${word[0]?.toUpperCase()}${word.slice(1)}`).join("");
  return /^[A-Za-z]/.test(joined) ? joined : `Service${joined}`;
}

function doc(description: string | undefined, indent: string): string {
  return description ? `${indent}/** ${inComment(description)} */\n` : "";
}

/** Escapes foreign text so that it cannot end the comment around it. */
function inComment(text: string): string {
  return text.replaceAll("*/", "*\\/").replaceAll(/\s+/g, " ").trim();
}
