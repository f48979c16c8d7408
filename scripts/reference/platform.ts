/**
 * Builds the OpenAPI document of `/api/v1` from the bindings that REST compiles
 * and the comments of the proto files. The generated code does not contain these
 * comments, so `buf` reads the files.
 */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  createFileRegistry,
  type DescField,
  type DescFile,
  fromBinary,
  getOption,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Access, access } from "../../gen/tessera/v1/access_pb.js";
import { problem, type Reason } from "../../src/errors.ts";
import type { JsonSchema } from "../../src/protocol/manifest.ts";
import { httpStatus } from "../../src/server/http/error-status.ts";
import { type Binding, compileBindings } from "../../src/server/rest/binding.ts";
import { hasTextForm } from "../../src/server/rest/fields.ts";
import type { RestRoute } from "../../src/server/rest/path-matching.ts";
import { version } from "../../src/version.ts";
import { commentOf, descriptionOf, errorsOf } from "./comments.ts";
import { MessageSchemas } from "./schemas.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const BUF = join(ROOT, "node_modules/.bin/buf");
const MAX_BYTES = 2 ** 26;

const CALLERS: { readonly [access in Access]?: string } = {
  [Access.PUBLIC]: "Anyone.",
  [Access.AUTHENTICATED]: "Any session or token.",
  [Access.SESSION]: "A signed-in person; no token.",
  [Access.DEVELOPER]: "A member's session, or a token with developer operations access.",
  [Access.ADMIN]: "An admin's session or personal token with developer operations access.",
  [Access.ENDPOINT]:
    "Callers of the deployment: anyone while its authorization is off, otherwise a token with access to it, or a member's session.",
  [Access.MONITORING]: "A monitoring token.",
};

/** Services that callers of deployments use; listed before the others, in reverse order. */
const FIRST = ["EndpointService", "TaskService"];

/** Reasons that follow from who may call. */
const REFUSALS: { readonly [access in Access]?: readonly Reason[] } = {
  [Access.PUBLIC]: [],
  [Access.AUTHENTICATED]: ["TOKEN_INVALID"],
  [Access.SESSION]: ["TOKEN_INVALID", "SIGN_IN_REQUIRED"],
  [Access.ADMIN]: ["TOKEN_INVALID", "ACCESS_DENIED", "ADMIN_REQUIRED"],
};

const KEY: JsonSchema = {
  name: "Idempotency-Key",
  in: "header",
  description: "The same as `idempotency_key` in the body; the two must not differ.",
  schema: { type: "string", maxLength: 255 },
};

const REPLAYED: JsonSchema = {
  "Idempotent-Replayed": {
    description: "`true` if the answer is an earlier task with the same key.",
    schema: { type: "string", enum: ["true"] },
  },
};

/** The document. */
export function platformDocument(): JsonSchema {
  const services = readFiles().flatMap((file) => file.services);
  const schemas = new MessageSchemas();
  const paths: Record<string, Record<string, JsonSchema>> = {};
  const routes = compileBindings(services);
  for (const route of routes) {
    const path = pathOf(route);
    paths[path] = {
      ...paths[path],
      [route.method.toLowerCase()]: operationOf(route, schemas),
    };
  }
  const shown = services.filter((one) => routes.some(({ target }) => target.method.parent === one));
  shown.sort((one, other) => FIRST.indexOf(other.name) - FIRST.indexOf(one.name));
  return {
    openapi: "3.1.0",
    info: { title: "Tessera", version },
    servers: [{ url: "/" }],
    tags: shown.map((one) => ({ name: one.name, description: commentOf(one).join("\n\n") })),
    security: [{ token: [] }],
    paths,
    components: {
      schemas: schemas.components,
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
    },
  };
}

/** The files of `proto/`, with comments. */
export function readFiles(): DescFile[] {
  const args = ["build", "proto", "--as-file-descriptor-set", "-o", "-"];
  const bytes = execFileSync(BUF, args, { cwd: ROOT, maxBuffer: MAX_BYTES });
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes));
  return [...registry.files];
}

/** The path, without the method's name, which `compileBindings` adds for messages. */
function pathOf({ text }: RestRoute<Binding>): string {
  return text.slice(0, text.indexOf(" (")).replaceAll(/\{([^}=]+)=[^}]*\}/g, "{$1}");
}

function operationOf(route: RestRoute<Binding>, schemas: MessageSchemas): JsonSchema {
  const { method, fields, body, responseField } = route.target;
  const inPath = [...fields.values()].map((path) => path[0]);
  const wholeInBody = body.kind !== "none" && body.field === undefined;
  const inQuery = wholeInBody
    ? []
    : method.input.fields.filter((field) => field !== body.field && !inPath.includes(field));
  const [summary = method.name, ...more] = descriptionOf(method);
  const callers = getOption(method, access);
  const isStream = method.methodKind === "server_streaming";
  const contentType = isStream ? "application/x-ndjson" : "application/json";
  const { rawResponse, key } = route.target;
  const takesKey = key.kind === "field";
  const output = rawResponse
    ? {}
    : responseField
      ? schemas.ofField(responseField)
      : schemas.of(method.output);
  return {
    operationId: `${method.parent.name}.${method.name}`,
    tags: [method.parent.name],
    summary: firstSentence(summary, method.name),
    description: [afterFirstSentence(summary), ...more].filter((text) => text !== "").join("\n\n"),
    "x-callers": CALLERS[callers] ?? "",
    ...(callers === Access.PUBLIC ? { security: [] } : {}),
    parameters: [
      ...[...fields.values()].map((path) => parameter("path", path, schemas)),
      ...queryOf(inQuery, schemas),
      ...(takesKey ? [KEY] : []),
    ],
    ...(body.kind === "none"
      ? {}
      : {
          requestBody: {
            content: {
              "application/json": {
                schema: body.field
                  ? schemas.ofField(body.field)
                  : schemas.ofFields(
                      method.input.fields.filter((field) => !inPath.includes(field)),
                    ),
              },
            },
          },
        }),
    responses: {
      200: {
        description: rawResponse
          ? "The raw bytes."
          : isStream
            ? "A stream: Server-Sent Events or lines of JSON, depending on `Accept`."
            : "Done.",
        ...(takesKey ? { headers: REPLAYED } : {}),
        content: { [rawResponse ? "*/*" : contentType]: { schema: output } },
      },
      ...failuresOf([
        ...errorsOf(method),
        ...(REFUSALS[callers] ?? ["TOKEN_INVALID", "ACCESS_DENIED"]),
        "REQUEST_INVALID",
      ]),
    },
  };
}

/** Fields that a query can hold: plain values. */
function queryOf(fields: readonly DescField[], schemas: MessageSchemas): JsonSchema[] {
  return fields.filter(hasTextForm).map((field) => parameter("query", [field], schemas));
}

function parameter(
  place: "path" | "query",
  path: readonly DescField[],
  schemas: MessageSchemas,
): JsonSchema {
  const field = path.at(-1);
  const { description, ...schema } = field ? schemas.ofField(field) : {};
  return {
    name: path.map(({ name }) => name).join("."),
    in: place,
    ...(place === "path" ? { required: true } : {}),
    ...(description === undefined ? {} : { description }),
    schema,
  };
}

function failuresOf(reasons: readonly Reason[]): JsonSchema {
  const byStatus = Map.groupBy(new Set(reasons), (reason) => httpStatus(problem(reason, "")));
  return Object.fromEntries(
    [...byStatus].map(([status, some]) => [
      status,
      { description: `Reasons: ${some.join(", ")}.` },
    ]),
  );
}

/** `CreateToken creates a token. …` is `Creates a token`. */
function firstSentence(text: string, name: string): string {
  const [sentence = text] = text.split(/(?<=[.])\s/, 1);
  const told = sentence.startsWith(`${name} `) ? sentence.slice(name.length + 1) : sentence;
  return `${told.charAt(0).toUpperCase()}${told.slice(1)}`.replace(/\.$/, "");
}

function afterFirstSentence(text: string): string {
  return text.slice(text.split(/(?<=[.])\s/, 1)[0]?.length).trim();
}
