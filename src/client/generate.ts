/** The code generator for typed clients: TypeScript from a deployment's `/schema.json`. */
import { type FlatSchema, factsOf, type SchemaRoute, type ServiceSchema } from "./schema.ts";

/** Returns the source of the module: a type for the service, and `createClient`. */
export function clientSource(schema: ServiceSchema): string {
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
} from "tessera-platform/client";

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
  const whole = output.type === "file" ? "File" : typeOf(output, "  ");
  const piece = output.type === "file" ? "Uint8Array" : whole;
  const result = output.is_stream ? `AsyncIterable<${piece}>` : whole;
  return `${doc(description, "  ")}  readonly ${key(name)}: EndpointTypes<
    "${isTask ? "task" : "api"}",
    ${typeOf(input, "    ")},
    ${result}
  >;`;
}

/**
 * Depth to which types are generated of a schema: deep enough for any value that somebody
 * wrote a schema for.
 */
const MAX_SCHEMA_DEPTH = 32;

function typeOf(schema: FlatSchema | undefined, indent: string, depth = 0): string {
  if (schema === undefined || depth > MAX_SCHEMA_DEPTH) {
    return "unknown";
  }
  if (schema.const !== undefined) {
    return literal(schema.const);
  }
  if (Array.isArray(schema.enum) && schema.enum.length > 0) {
    return schema.enum.map(literal).join(" | ");
  }
  const types = Array.isArray(schema.type) ? schema.type : [schema.type];
  return types.map((type) => typeNamed(type, schema, { indent, depth })).join(" | ");
}

interface Place {
  readonly indent: string;
  readonly depth: number;
}

function typeNamed(type: unknown, schema: FlatSchema, { indent, depth }: Place): string {
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
      const item = typeOf(schema.items, indent, depth + 1);
      return `readonly ${/[ |]/.test(item) ? `(${item})` : item}[]`;
    }
    case "object":
      return objectType(schema, { indent, depth });
    default:
      return "unknown";
  }
}

function objectType(schema: FlatSchema, { indent, depth }: Place): string {
  const { properties = {}, required = [], additionalProperties } = schema;
  const inner = `${indent}  `;
  const members = Object.entries(properties).map(([name, property]) => {
    const optional = required.includes(name) ? "" : "?";
    const type = typeOf(property, inner, depth + 1);
    return `${doc(property.description, inner)}${inner}readonly ${key(name)}${optional}: ${type};`;
  });
  if (members.length > 0) {
    return `{\n${members.join("\n")}\n${indent}}`;
  }
  if (typeof additionalProperties === "object") {
    return `Readonly<Record<string, ${typeOf(additionalProperties, indent, depth + 1)}>>`;
  }
  return `Readonly<Record<string, ${additionalProperties === false ? "never" : "unknown"}>>`;
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
