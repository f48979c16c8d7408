/**
 * A client of the Connect protocol for unary calls in JSON, with the session of this browser
 * (https://connectrpc.com/docs/protocol#unary-request). It is typed by the generated services,
 * of which only the types are imported: a library for protobuf would be a third of the page.
 */
import type { DescMessage, MessageJsonType } from "@bufbuild/protobuf";
import { CallError, readError, unreachable } from "./errors.ts";

interface Unary {
  readonly methodKind: "unary";
  readonly input: DescMessage;
  readonly output: DescMessage;
}

/** The unary methods of a service: each takes and returns messages as JSON. */
export type Client<Service extends { readonly method: object }> = {
  readonly [M in keyof Service["method"] as Service["method"][M] extends Unary
    ? M
    : never]: Service["method"][M] extends Unary
    ? (
        request: MessageJsonType<Service["method"][M]["input"]>,
        options?: ConsoleCallOptions,
      ) => Promise<MessageJsonType<Service["method"][M]["output"]>>
    : never;
};

interface ConsoleCallOptions {
  readonly signal?: AbortSignal | undefined;
  /** The deployment that is called, `organization/name`, for methods of endpoints and tasks. */
  readonly deployment?: string | undefined;
}

/** A client of a service by its full name, such as `tessera.v1.TokenService`. */
export function createClient<Service extends { readonly method: object }>(
  name: string,
): Client<Service> {
  return new Proxy({} as Client<Service>, {
    get: (_target, method) => (request: object, options?: ConsoleCallOptions) =>
      call(`/${name}/${capitalized(String(method))}`, request, options),
  });
}

async function call(
  path: string,
  request: object,
  options: ConsoleCallOptions = {},
): Promise<unknown> {
  const { signal, deployment } = options;
  const headers: Record<string, string> = {
    "content-type": "application/json",
    "connect-protocol-version": "1",
  };
  if (deployment !== undefined) {
    headers["tessera-deployment"] = deployment;
  }
  let response: Response;
  let text: string;
  try {
    const body = JSON.stringify(request);
    response = await fetch(path, { method: "POST", headers, body, signal: signal ?? null });
    text = await response.text();
  } catch (err) {
    throw signal?.aborted ? err : unreachable(err);
  }
  if (!response.ok) {
    throw readError(response, text);
  }
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CallError("The answer was not JSON; a proxy may have written it.", { cause });
  }
}

const capitalized = (method: string): string =>
  `${method.charAt(0).toUpperCase()}${method.slice(1)}`;
