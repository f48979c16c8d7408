/** The start message of `tessera serve`: URLs, and commands to try. */
import type { StartedService } from "../../app/serve.ts";
import type { ServeConfig } from "../../config/serve.ts";
import type { ServiceManifest } from "../../protocol/manifest.ts";
import { CURL_AUTHORIZATION, curlBody, curlPath, type ExampleOf, shellQuote } from "../curl.ts";

interface GreetingOptions {
  readonly config: ServeConfig;
  /** Present when calls require a token; `toExport` when the user's shell does not have it. */
  readonly token: { readonly toExport: string | undefined } | undefined;
  readonly exampleOf: ExampleOf;
}

export function greeting(
  { manifest, workers, storedIn, url }: StartedService,
  { config, token, exampleOf }: GreetingOptions,
): string {
  const { endpoints, mounts = [] } = manifest;
  const counts = [
    ...(endpoints.length > 0 || mounts.length === 0 ? [count(endpoints.length, "endpoint")] : []),
    ...(mounts.length > 0 ? [count(mounts.length, "mounted server")] : []),
    count(workers, "worker"),
  ];
  const lines = [
    `Tessera serves ${manifest.name} (${counts.join(", ")}) on ${url}`,
    "",
    ...mounts.map(({ path }) => `  server    ${url}${path}`),
    // A server at the root has a page of its own there.
    ...(mounts.some(({ path }) => path === "/") ? [] : [`  page      ${url}/`]),
    `  OpenAPI   ${url}/docs.json`,
    `  schema    ${url}/schema.json`,
    `  gRPC      ${url.replace("http://", "")} (with reflection)`,
    config.database === ":memory:"
      ? "  storage   memory, for development: tasks are gone at exit; --database ./tasks.db keeps them"
      : `  storage   ${storedIn}`,
    ...(config.workers === undefined && manifest.workers !== undefined
      ? [`  workers   ${manifest.workers}, as the service says; --workers sets another number`]
      : []),
    ...ofSystem(manifest),
    `  callers   ${token ? "need the token, as Authorization: Bearer …" : "need no token; --token asks for one"}`,
    "",
    "Try it:",
    "",
    ...examples(manifest, { url, token, exampleOf }),
    "Ctrl-C stops.",
    "",
  ];
  return `${lines.join("\n")}\n`;
}

/** What the service has of a system when it is deployed, and what to do about it here. */
function ofSystem({ image, packages = [] }: ServiceManifest): string[] {
  return [
    ...(image === undefined
      ? []
      : [
          `  image     ${image} when it is deployed; here it has the programs of this machine: tessera start, and tessera deploy to it, run it in its image`,
        ]),
    ...(packages.length === 0
      ? []
      : [
          `  packages  ${packages.join(", ")} when it is deployed; here it has those of this machine: apt install ${packages.join(" ")}`,
        ]),
  ];
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** Example commands for the first api and the first task, or for a server: call, submit, status, get. */
function examples(
  { endpoints, mounts = [] }: Pick<ServiceManifest, "endpoints" | "mounts">,
  { url, token, exampleOf }: Omit<GreetingOptions, "config"> & { readonly url: string },
): string[] {
  const auth = token ? CURL_AUTHORIZATION : "";
  const api = endpoints.find(({ kind }) => kind === "api");
  const task = endpoints.find(({ kind }) => kind === "task");
  const lines: string[] = [];
  if (token?.toExport !== undefined) {
    lines.push(`  export TESSERA_TOKEN=${shellQuote(token.toExport)}`, "");
  }
  if (endpoints.length === 0) {
    lines.push(...mounts.slice(0, 1).map(({ path }) => `  curl ${url}${path}${auth}`), "");
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
