/** The start message of `tessera serve`: URLs, and commands to try. */
import type { StartedService } from "../../app/serve.ts";
import type { ServeConfig } from "../../config/serve.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";
import { CURL_AUTHORIZATION, curlBody, curlPath, type ExampleOf, shellQuote } from "../curl.ts";

export interface GreetingOptions {
  readonly config: ServeConfig;
  /** Present when calls require a token; `toExport` when the user's shell does not have it. */
  readonly token: { readonly toExport: string | undefined } | undefined;
  readonly exampleOf: ExampleOf;
}

export function greeting(
  { manifest, workers, storedIn, url }: StartedService,
  { config, token, exampleOf }: GreetingOptions,
): string {
  const { endpoints } = manifest;
  const lines = [
    `Tessera serves ${manifest.name} (${count(endpoints.length, "endpoint")}, ${count(workers, "worker")}) on ${url}`,
    "",
    `  page      ${url}/`,
    `  OpenAPI   ${url}/docs.json`,
    `  schema    ${url}/schema.json`,
    `  gRPC      ${url.replace("http://", "")} (with reflection)`,
    config.database === ":memory:"
      ? "  storage   memory, for development: tasks are gone at exit; --database ./tasks.db keeps them"
      : `  storage   ${storedIn}`,
    ...(config.workers === undefined && manifest.workers !== undefined
      ? [`  workers   ${manifest.workers}, as the service says; --workers sets another number`]
      : []),
    `  callers   ${token ? "need the token, as Authorization: Bearer …" : "need no token; --token asks for one"}`,
    "",
    "Try it:",
    "",
    ...examples(endpoints, { url, token, exampleOf }),
    "Ctrl-C stops.",
    "",
  ];
  return `${lines.join("\n")}\n`;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** Example commands for the first api and the first task: call, submit, status, get. */
function examples(
  endpoints: readonly EndpointManifest[],
  { url, token, exampleOf }: Omit<GreetingOptions, "config"> & { readonly url: string },
): string[] {
  const auth = token ? CURL_AUTHORIZATION : "";
  const api = endpoints.find(({ kind }) => kind === "api");
  const task = endpoints.find(({ kind }) => kind === "task");
  const lines: string[] = [];
  if (token?.toExport !== undefined) {
    lines.push(`  export TESSERA_TOKEN=${shellQuote(token.toExport)}`, "");
  }
  if (api) {
    lines.push(`  curl ${url}${curlPath(api)}${auth} ${curlBody(api, exampleOf)}`, "");
  }
  if (task) {
    lines.push(
      `  task_id=$(curl -s ${url}${curlPath(task, "submit")}${auth} ${curlBody(task, exampleOf)} | sed 's/.*"task_id":"\\([^"]*\\)".*/\\1/')`,
      `  curl "${url}${curlPath(task, "status")}?task_id=$task_id"${auth}`,
      `  curl "${url}${curlPath(task, "get")}?task_id=$task_id&wait=30"${auth}`,
      "",
    );
  }
  return lines;
}
