/** The OpenAPI parts of one endpoint: its schemas, request body and result. */
import type { EndpointManifest, JsonSchema } from "../../protocol/manifest.ts";
import { resultIsText } from "../schema.ts";
import { exampleOf } from "./example.ts";
import { componentReference, hoistSchema } from "./hoist.ts";

/** The components of an endpoint: `{name}.input`, `{name}.output`, and with files `{name}.form`. */
export function endpointSchemas(endpoint: EndpointManifest): { [component: string]: JsonSchema } {
  const { name } = endpoint;
  const input = hasFiles(endpoint) ? withDataUrls(endpoint) : endpoint.input;
  return {
    [`${name}.input`]: hoistSchema(input, `${name}.input`),
    ...(hasFiles(endpoint)
      ? { [`${name}.form`]: hoistSchema(endpoint.input, `${name}.form`) }
      : {}),
    ...(endpoint.outputFile
      ? {}
      : { [`${name}.output`]: hoistSchema(endpoint.output, `${name}.output`) }),
  };
}

/** The request body: JSON, and also a form if the endpoint takes files. */
export function requestBody(endpoint: EndpointManifest): JsonSchema {
  const { name, input } = endpoint;
  const required = Array.isArray(input.required) && input.required.length > 0;
  const json = {
    schema: { $ref: componentReference(`${name}.input`) },
    example: exampleOf(hasFiles(endpoint) ? withDataUrls(endpoint) : input),
  };
  if (!hasFiles(endpoint)) {
    return { required, content: { "application/json": json } };
  }
  const form = {
    schema: { $ref: componentReference(`${name}.form`) },
    encoding: partEncodings(endpoint),
  };
  return { required, content: { "multipart/form-data": form, "application/json": json } };
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
  const schema = { $ref: componentReference(`${name}.output`) };
  const example = exampleOf(output);
  const contentType = resultIsText(endpoint) ? "text/plain" : "application/json";
  return {
    description: "What the function returned.",
    content: { [contentType]: { schema, ...(example === null ? {} : { example }) } },
  };
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
      format: "uri",
      pattern: "^data:",
      examples: [`data:${exampleMediaType(file.contentType)};base64,AA==`],
    };
    properties[name] = {
      ...(description ? { description } : {}),
      ...(file.array ? { type: "array", items: url } : url),
    };
  }
  return { ...endpoint.input, properties };
}

function exampleMediaType(range: string | undefined): string {
  const examples: { readonly [range: string]: string } = {
    "image/*": "image/png",
    "audio/*": "audio/wav",
    "video/*": "video/mp4",
  };
  return !range || range === "*/*" ? "application/octet-stream" : (examples[range] ?? range);
}
