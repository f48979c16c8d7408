/**
 * The code generator for typed clients in Python: a module with a synchronous and an
 * asynchronous client, from a deployment's `/schema.json`. Everything but the service's own names
 * is reached through two modules, so that no name of a service can hide one that it needs.
 */
import { ClassNames, docstring, identifier, prose, text } from "./python-names.ts";
import { PythonTypes } from "./python-types.ts";
import type { SchemaRoute, ServiceSchema } from "./schema.ts";

/** What differs between the two clients. */
interface Kind {
  readonly prefix: "Sync" | "Async";
  /** Before the names of classes. */
  readonly mark: "" | "Async";
  readonly def: string;
  readonly await: string;
  readonly iterator: (piece: string) => string;
}

const KINDS: readonly Kind[] = [
  {
    prefix: "Sync",
    mark: "",
    def: "def",
    await: "",
    iterator: (piece) => `_t.Generator[${piece}, None, None]`,
  },
  {
    prefix: "Async",
    mark: "Async",
    def: "async def",
    await: "await ",
    iterator: (piece) => `_t.AsyncGenerator[${piece}, None]`,
  },
];

/** What the clients themselves have. */
const MEMBERS = new Set(["close", "token", "wait_ready"]);

interface Argument {
  readonly wire: string;
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly about: string;
}

interface Endpoint {
  readonly route: SchemaRoute;
  /** The attribute of the client. */
  readonly attribute: string;
  readonly arguments: readonly Argument[];
  readonly whole: string;
  /** Of a result that is streamed. */
  readonly piece: string | undefined;
}

/** Returns the source of the module. */
export function pythonClientSource(schema: ServiceSchema): string {
  const names = new ClassNames();
  const types = new PythonTypes(names);
  const taken = new Set(MEMBERS);
  const clients = KINDS.map(({ mark }) => names.of(mark, schema.name, "client"));
  const endpoints = schema.routes.map((route) => endpointOf(route, types, taken));
  const parts = KINDS.map((kind, index) => {
    const classes = endpoints.map(({ route }) => names.of(kind.mark, route.name, "endpoint"));
    const written = endpoints.map((each, at) => endpointClass(each, classes[at] ?? "", kind));
    const client = clientClass(schema, clients[index] ?? "", kind, { endpoints, classes });
    return [...written, client].join("\n\n");
  });
  const exported = [...clients].sort().map((name) => `    ${text(name)},\n`);
  const body = [...types.classes, ...parts].join("\n\n");
  return `${header(schema, body)}

${body}
__all__ = [
${exported.join("")}]
`;
}

function header({ name }: ServiceSchema, body: string): string {
  return `"""The client of ${prose(name)}, written by \`tessera client generate\`.

When the service has changed, generate it again instead of changing it here.
"""

# ruff: noqa
from __future__ import annotations

${body.includes("_typing.") ? "import typing as _typing\n\n" : ""}from tessera import typed as _t
`;
}

function endpointOf(route: SchemaRoute, types: PythonTypes, attributes: Set<string>): Endpoint {
  const { name, input, output } = route;
  const attribute = identifier(name, attributes);
  attributes.add(attribute);
  const taken = new Set<string>();
  const args = Object.entries(input.properties ?? {}).map(([wire, schema]): Argument => {
    const argument = identifier(wire, taken);
    taken.add(argument);
    const type = types.of(schema, "argument", [name, wire]);
    const required = (input.required ?? []).includes(wire);
    return { wire, name: argument, type, required, about: prose(schema.description ?? "") };
  });
  const isFile = output.type === "file";
  const result = types.of(output, "result", [name, "result"]);
  if (!output.is_stream) {
    return { route, attribute, arguments: args, whole: result, piece: undefined };
  }
  const whole = isFile || result === "str" ? result : `list[${result}]`;
  return { route, attribute, arguments: args, whole, piece: isFile ? "bytes" : result };
}

function endpointClass(endpoint: Endpoint, name: string, kind: Kind): string {
  const { route, whole, piece } = endpoint;
  const types = piece === undefined ? whole : `${whole}, ${piece}`;
  const methods = [callMethod(endpoint, kind)];
  if (route.is_task) {
    methods.push(submitMethod(endpoint, kind, `_t.${kind.prefix}Task[${types}]`));
  } else if (piece !== undefined) {
    methods.push(streamMethod(endpoint, kind, piece));
  }
  const base = `_t.${kind.prefix}${route.is_task ? "TaskEndpoint" : "ApiEndpoint"}[${types}]`;
  return `class ${name}(${base}):
${docstring([prose(route.description ?? "") || `The endpoint ${prose(route.name)}.`], "    ")}
${methods.join("\n")}`;
}

function callMethod(endpoint: Endpoint, kind: Kind): string {
  const does = endpoint.route.is_task
    ? "Submits a task, waits for its end, and returns its result."
    : "Calls the endpoint and returns its result.";
  return `    ${kind.def} __call__(${parameters(endpoint)}) -> ${endpoint.whole}:
${docstring([does, ...abouts(endpoint)], "        ")}        return ${kind.await}self._call(${given(endpoint)})
`;
}

function submitMethod(endpoint: Endpoint, kind: Kind, handle: string): string {
  const does = "Submits a task. Repeated when the connection breaks, and stored at most once.";
  return `    ${kind.def} submit(${parameters(endpoint)}) -> ${handle}:
${docstring([does, ...abouts(endpoint)], "        ")}        return ${kind.await}self._submit(${given(endpoint)})
`;
}

function streamMethod(endpoint: Endpoint, kind: Kind, piece: string): string {
  const does = "Calls the endpoint and yields the pieces of its result as it makes them.";
  return `    def stream(${parameters(endpoint)}) -> ${kind.iterator(piece)}:
${docstring([does, ...abouts(endpoint)], "        ")}        return self._stream(${given(endpoint)})
`;
}

function parameters({ arguments: args }: Endpoint): string {
  const declared = args.map(({ name, type, required }) =>
    required ? `${name}: ${type}` : `${name}: ${type} | _t.Unset = _t.UNSET`,
  );
  return declared.length === 0 ? "self" : ["self", "*", ...declared].join(", ");
}

function given({ arguments: args }: Endpoint): string {
  return `{${args.map(({ wire, name }) => `${text(wire)}: ${name}`).join(", ")}}`;
}

function abouts({ arguments: args }: Endpoint): string[] {
  return args.flatMap(({ name, about }) => (about === "" ? [] : [`\`${name}\`: ${about}`]));
}

function clientClass(
  { name, description }: ServiceSchema,
  className: string,
  { prefix }: Kind,
  { endpoints, classes }: { endpoints: readonly Endpoint[]; classes: readonly string[] },
): string {
  const about = `${prefix === "Sync" ? "Calls" : "Calls, on an event loop,"} a deployment of ${prose(name)}. Its parameters are those of \`${prefix}HTTPClient\`.`;
  const members = endpoints.map(
    ({ attribute, route }, at) => `    @property
    def ${attribute}(self) -> ${classes[at]}:
        return ${classes[at]}(self._client.endpoint(${text(route.name)}))
`,
  );
  return `class ${className}(_t.${prefix}Client):
${docstring([prose(description ?? ""), about], "    ")}
${members.join("\n")}`;
}
