/** curl commands for endpoints, for a POSIX shell. */
import type { EndpointManifest, JsonSchema } from "../protocol/manifest.ts";

/** Returns an example value for a schema. */
export type ExampleOf = (schema: JsonSchema) => unknown;

/** The path of an endpoint as an argument of curl, or what is `below` it. */
export function curlPath({ name, route = `/${name}` }: EndpointManifest, below = ""): string {
  const path = encodeURI(below === "" ? route : `${route.replace(/\/$/, "")}/${below}`);
  return path.replace(/[$`"!*'();&]/g, (each) => `%${each.charCodeAt(0).toString(16)}`);
}

/** A header option for curl; the shell expands the token. */
export const CURL_AUTHORIZATION = ' -H "Authorization: Bearer $TESSERA_TOKEN"';

/** Example arguments as curl options: JSON, or a form if the endpoint takes files. */
export function curlBody({ input, files }: EndpointManifest, exampleOf: ExampleOf): string {
  const values = Object.entries(exampleOf(input) as Record<string, unknown>);
  if (Object.keys(files).length === 0) {
    return `-H "content-type: application/json" -d ${shellQuote(JSON.stringify(Object.fromEntries(values)))}`;
  }
  const parts = values.flatMap(([name, value]) =>
    files[name]
      ? []
      : [
          `-F ${shellQuote(`${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)}`,
        ],
  );
  const fileParts = Object.entries(files).map(
    ([name, { contentType }]) => `-F ${name}=@file.${extension(contentType)}`,
  );
  return [...fileParts, ...parts].join(" ");
}

function extension(contentType: string | undefined): string {
  return contentType?.split("/")[1]?.replace(/[^a-z0-9].*$/, "") || "bin";
}

/** Quotes text for a POSIX shell if that is necessary. */
export function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : shellQuote(text);
}

/** Quotes text for a POSIX shell. */
export function shellQuote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
