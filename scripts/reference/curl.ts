/** Writes an example call of an operation with curl, with valid values. */

import type { JsonSchema } from "../../src/protocol/manifest.ts";
import { exampleOf } from "../../src/service/openapi/example.ts";
import type { Content, Place } from "./document.ts";
import { resolve } from "./types.ts";

const SERVER = "http://localhost:3000";

const ID = "019a0b5e-7c1d-800f-8f21-5b0c6f1d2e3a";

/** Names in paths, which differ from those in bodies. */
const IN_PATHS: { readonly [name: string]: string } = {
  organization: "acme",
  deployment: "summarizer",
};

/** Example values for names and ids. */
const EXAMPLES: { readonly [name: string]: unknown } = {
  task_id: ID,
  name: "summarizer",
  endpoint: "summarize_batch",
  deployment: "acme/summarizer",
  arguments: { texts: ["One. Two. Three."], sentences: 1 },
  tasks: [{ endpoint: "summarize_batch", arguments: { texts: ["One. Two."] } }],
  index: "eyJmaWxlcyI6W119",
  email: "you@example.com",
  password: "correct horse battery staple",
  display_name: "Acme",
  authorization: true,
};

/** Longer texts are truncated in examples. */
const LONGEST_TEXT = 40;

export function curlOf(place: Place): string {
  const { document, path, methods, operation } = place;
  const [method = "GET"] = methods;
  const parameters = (operation.parameters ?? []).map((one) => resolve(document, one));
  const query = parameters
    .filter(({ in: where, name }) => where === "query" && name === "task_id")
    .map(({ name }) => `?${name}=${ID}`)
    .join("");
  const filled = path.replaceAll(/\{([^}]+)\}/g, (_, name: string) => known(name) ?? ID);
  const json = operation.requestBody?.content["application/json"];
  // The task may be named in the query or in the body.
  const body = query === "" ? json : undefined;
  const isImplied = method === "GET" || (method === "POST" && body !== undefined);
  const head = ["curl", ...(isStream(place) ? ["-N"] : []), ...(isImplied ? [] : ["-X", method])];
  const lines = [[...head, `"${SERVER}${filled}${query}"`].join(" ")];
  if (operation.responses[401] !== undefined) {
    const isToken = !operation["x-callers"]?.includes("no token");
    lines.push(isToken ? '-H "authorization: Bearer $TOKEN"' : "--cookie cookies.txt");
  }
  if (body) {
    const value = body.example ?? exampleBody(place, body);
    lines.push(`-H "content-type: application/json"`, `-d '${JSON.stringify(shortened(value))}'`);
  }
  return lines.join(" \\\n  ");
}

function known(name: string): string | undefined {
  const value = IN_PATHS[name] ?? EXAMPLES[name];
  return typeof value === "string" ? encodeURIComponent(value) : undefined;
}

function isStream({ operation }: Place): boolean {
  const { content = {} } = operation.responses[200] ?? {};
  return Object.keys(content as object).some((type) => /event-stream|ndjson/.test(type));
}

/** The fields that have an example; without any, the first field. */
function exampleBody({ document, path }: Place, { schema }: Content): unknown {
  const { properties = {} } = resolve(document, schema);
  const all = Object.entries(properties as { readonly [name: string]: JsonSchema });
  const telling = all.filter(([name]) => name in EXAMPLES && !path.includes(`${name}}`));
  const shown = telling.length > 0 ? telling : all.slice(0, 1);
  return Object.fromEntries(
    shown.map(([name, value]) => [name, EXAMPLES[name] ?? exampleOf(resolve(document, value))]),
  );
}

function shortened(value: unknown): unknown {
  if (typeof value === "string") {
    const text = value.length > LONGEST_TEXT ? `${value.slice(0, LONGEST_TEXT)}…` : value;
    return text.replaceAll("'", "’");
  }
  if (Array.isArray(value)) {
    return value.map(shortened);
  }
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, shortened(each)]));
  }
  return value;
}
