/** Reads a deployment's description, `/schema.json`. */
import { ANSWER_QUIET_MS, type CallOptions, type Connection } from "./connection.ts";
import type { EndpointFacts } from "./endpoint.ts";
import { ForeignAnswerError } from "./errors.ts";
import { type ResultForm, readJson } from "./result.ts";

/** A JSON Schema without references and alternatives, as `/schema.json` has it. */
export interface FlatSchema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, FlatSchema>>;
  readonly required?: readonly string[];
  readonly items?: FlatSchema;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly additionalProperties?: boolean | FlatSchema;
}

/** One endpoint. */
export interface SchemaRoute {
  readonly name: string;
  /** Its path, as URLs have it. Default: a slash and its name. */
  readonly route?: string;
  readonly is_task: boolean;
  readonly description?: string;
  readonly input: FlatSchema;
  /** Of a result that is streamed, one piece of it. */
  readonly output: FlatSchema & { readonly is_stream?: boolean };
}

/** `/schema.json` */
export interface ServiceSchema {
  readonly name: string;
  readonly description?: string;
  readonly routes: readonly SchemaRoute[];
}

/** Fetches a deployment's `/schema.json`. Rejects with a `DeploymentError`. */
export async function fetchSchema(
  connection: Connection,
  options: CallOptions = {},
): Promise<ServiceSchema> {
  const json = await connection.send(
    "/schema.json",
    { ...options, repeatable: true, quietMs: ANSWER_QUIET_MS },
    readJson,
  );
  if (typeof json.name !== "string" || !Array.isArray(json.routes)) {
    throw new ForeignAnswerError(
      "what is at /schema.json does not describe a service: is the URL that of a deployment?",
    );
  }
  return json as unknown as ServiceSchema;
}

/** Extracts the facts that a client needs at run time. */
export function factsOf({ name, route, is_task: isTask, output }: SchemaRoute): EndpointFacts {
  const forms: Readonly<Record<string, ResultForm>> = { file: "file", string: "text" };
  return {
    kind: isTask ? "task" : "api",
    result: forms[String(output.type)] ?? "json",
    ...(output.is_stream && { streams: true }),
    ...(route !== undefined && route !== `/${name}` && { path: route }),
  };
}
