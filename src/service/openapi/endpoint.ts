/** The OpenAPI parts of one endpoint: its schemas, request body and result. */

import type { EndpointManifest, JsonSchema, StreamManifest } from "../../protocol/manifest.ts";
import { createSchemaCheck } from "../input/schema-check.ts";
import { textTypeOf } from "../piece-type.ts";
import { resultIsText } from "../schema.ts";
import { exampleOf } from "./example.ts";
import { componentReference, hoistSchema } from "./hoist.ts";
import { openEnum } from "./open-enum.ts";

/**
 * The components of an endpoint: `{name}.input`, `{name}.output`, and with files `{name}.form`,
 * and what these refer to within themselves.
 */
export function endpointSchemas(endpoint: EndpointManifest): { [component: string]: JsonSchema } {
  const { name } = endpoint;
  const input = hasFiles(endpoint) ? withDataUrls(endpoint) : endpoint.input;
  return {
    ...hoistSchema(input, `${name}.input`),
    ...(hasFiles(endpoint) ? hoistSchema(formOf(endpoint), `${name}.form`) : {}),
    ...(endpoint.outputFile ? {} : hoistSchema(endpoint.output, `${name}.output`)),
  };
}

/** The arguments in a form, in which a list of files that may be empty has no parts then. */
function formOf({ input, files }: EndpointManifest): JsonSchema {
  const needed = (name: unknown): boolean => {
    const file = files[String(name)];
    return file === undefined || !file.array || (file.minItems ?? 0) > 0;
  };
  const required = Array.isArray(input.required) ? input.required.filter(needed) : [];
  const { required: _, ...rest } = input;
  return required.length === 0 ? rest : { ...rest, required };
}

/** The request body: JSON, and also a form if the endpoint takes files. */
export function requestBody(endpoint: EndpointManifest): JsonSchema {
  const { name, input, rootArgument } = endpoint;
  const required = Array.isArray(input.required) && input.required.length > 0;
  const described = {
    description: [
      ...(rootArgument === undefined
        ? []
        : [`The body may also be the value of \`${rootArgument}\` alone.`]),
      "A form is read too, and a body that is compressed with gzip or zstd.",
    ].join(" "),
    required,
  };
  const example = exampleOf(hasFiles(endpoint) ? withDataUrls(endpoint) : input);
  const json = {
    schema: { $ref: componentReference(`${name}.input`) },
    ...(isAccepted(endpoint, example) ? { example } : {}),
  };
  if (!hasFiles(endpoint)) {
    return { ...described, content: { "application/json": json } };
  }
  const form = {
    schema: { $ref: componentReference(`${name}.form`) },
    encoding: partEncodings(endpoint),
  };
  return { ...described, content: { "multipart/form-data": form, "application/json": json } };
}

/** The response with the result of the function. */
export function resultResponse(endpoint: EndpointManifest): JsonSchema {
  const { name, outputFile, output } = endpoint;
  if (outputFile) {
    const contentType = outputFile.contentType ?? "application/octet-stream";
    return {
      description: "The file that the function returned.",
      headers: {
        "Content-Disposition": { description: "Names the file.", schema: { type: "string" } },
      },
      content: {
        [contentType]: {
          schema: { type: "string", format: "binary", contentMediaType: contentType },
        },
      },
    };
  }
  const piece = { $ref: componentReference(`${name}.output`) };
  const isList = endpoint.stream?.pieces === "json";
  const schema = isList ? { type: "array", items: piece } : piece;
  const example = isList ? null : exampleOf(output);
  const contentType = resultIsText(endpoint)
    ? (textTypeOf(endpoint).split(";", 1)[0] as string)
    : "application/json";
  return {
    description: "What the function returned.",
    content: { [contentType]: { schema, ...(example === null ? {} : { example }) } },
  };
}

/**
 * The response with a streamed result in all of its forms; the first one is the default. Only an
 * api gives the whole here: that of a task has a path of its own.
 */
export function streamedResponse(endpoint: EndpointManifest): JsonSchema {
  const isApi = endpoint.kind === "api";
  const { content: whole } = resultResponse(endpoint);
  const piece = endpoint.outputFile ? "the bytes in base64" : `${endpoint.name}.output`;
  const text = (description: string) => ({ schema: { type: "string", description } });
  const events = text(
    `An event for each piece, with its number as id and its JSON as data (${piece}); then \`end\`, or \`error\` with the error.`,
  );
  const lines = text(
    `A line of JSON for each piece (${piece}); an error is a last line \`{"error": …}\`.`,
  );
  const framed = {
    "application/x-ndjson": lines,
    "application/jsonl": lines,
    "text/event-stream": events,
  };
  const forms: Readonly<Record<StreamManifest["pieces"], object>> = {
    json: { ...framed, ...(isApi && (whole as object)) },
    text: {
      ...(whole as object),
      ...framed,
      // A text that is events itself is not framed as the data of others.
      ...(whole as object),
      ...(isApi && { "application/json": { schema: { type: "string" } } }),
    },
    bytes: { ...(whole as object), ...framed },
  };
  return {
    description: "The pieces that the function yields, as it makes them.",
    headers: {
      "Tessera-Pieces": {
        description: "What the pieces are.",
        schema: openEnum(["json", "text", "bytes"]),
      },
    },
    content: forms[endpoint.stream?.pieces ?? "json"],
  };
}

/** Whether an endpoint takes these arguments: a made-up example may fail a pattern. */
function isAccepted(endpoint: EndpointManifest, example: unknown): boolean {
  if (typeof example !== "object" || example === null) {
    return false;
  }
  const withoutFiles = Object.entries(example).filter(([name]) => !(name in endpoint.files));
  return createSchemaCheck(endpoint)(Object.fromEntries(withoutFiles)).count === 0;
}

function hasFiles(endpoint: EndpointManifest): boolean {
  return Object.keys(endpoint.files).length > 0;
}

function partEncodings(endpoint: EndpointManifest): { [argument: string]: JsonSchema } {
  const encodings = Object.keys((endpoint.input.properties ?? {}) as JsonSchema).map((argument) => {
    const file = endpoint.files[argument];
    const contentType = file ? (file.contentType ?? "*/*") : "application/json";
    return [argument, { contentType }];
  });
  return Object.fromEntries(encodings);
}

/** The schema of the arguments in JSON, with each file as a `data:` URL. */
function withDataUrls(endpoint: EndpointManifest): JsonSchema {
  const properties: Record<string, unknown> = { ...(endpoint.input.properties as JsonSchema) };
  for (const [name, file] of Object.entries(endpoint.files)) {
    const { description } = (properties[name] ?? {}) as JsonSchema;
    const url = {
      type: "string",
      pattern: dataUrlPattern(file.contentType),
      examples: [exampleFile(file.contentType)],
    };
    properties[name] = {
      ...(description ? { description } : {}),
      ...(file.array ? { type: "array", items: url } : url),
    };
  }
  return { ...endpoint.input, properties };
}

/** Data URLs of the types that a file argument takes, in base64. */
function dataUrlPattern(range = "*/*"): string {
  const token = "[A-Za-z0-9!#$&^_.+-]+";
  const [type = "*", subtype = "*"] = range.split("/");
  const quoted = (part: string) => (part === "*" ? token : part.replaceAll(/[.+^$]/g, "\\$&"));
  const base64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?";
  return `^data:${quoted(type)}/${quoted(subtype)};base64,${base64}$`;
}

/** A picture of 8×8 pixels, a white 1 on black: services refuse blank ones. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAAFUlEQVR42mNgQAb/YfR/dBF8DBAAAAZQBvqT1q5aAAAAAElFTkSuQmCC";

function exampleFile(range: string | undefined): string {
  const examples: { readonly [range: string]: string } = {
    "image/*": "image/png",
    "audio/*": "audio/wav",
    "video/*": "video/mp4",
  };
  const type = !range || range === "*/*" ? "application/octet-stream" : (examples[range] ?? range);
  return `data:${type};base64,${type === "image/png" ? PNG : "AA=="}`;
}
