/** One operation of the platform's OpenAPI document, from the binding of its method. */
import { type DescField, getOption } from "@bufbuild/protobuf";
import { Access, access } from "../../../gen/tessera/v1/access_pb.js";
import type { JsonSchema } from "../../protocol/manifest.ts";
import type { Binding } from "../../server/rest/binding.ts";
import { hasTextForm } from "../../server/rest/fields.ts";
import { answersOf, securityOf } from "./answers.ts";
import { descriptionOf } from "./comments.ts";
import { isRequired } from "./rules.ts";
import type { MessageSchemas } from "./schemas.ts";

const CALLERS: { readonly [access in Access]?: string } = {
  [Access.PUBLIC]: "Anyone.",
  [Access.AUTHENTICATED]: "Any session or token.",
  [Access.SESSION]: "A signed-in person; no token.",
  [Access.DEVELOPER]: "A member's session, or a token with developer operations access.",
  [Access.ADMIN]: "An admin's session or personal token with developer operations access.",
  [Access.ENDPOINT]:
    "Callers of the deployment: anyone while its authorization is off, otherwise a token with access to it, or a member's session.",
  [Access.MONITORING]: "A monitoring token.",
  [Access.OPERATOR]: "The session of an operator of the platform; no token.",
  [Access.WORKER]: "A token with worker access for the deployment.",
};

/** The name of a header is not in the proto files. */
const KEY = {
  name: "Idempotency-Key",
  in: "header",
  description: "The same as `idempotency_key` in the body; the two must not differ.",
};

const EXPECTED = {
  name: "If-Match",
  in: "header",
  description:
    "The `ETag` of the resource as it was read, or `*` for any. The change is made only if that is still its version; otherwise the answer is 412.",
  schema: { type: "string", pattern: String.raw`^(\*|(W/)?"[!#-~]*")$` },
};

/** The operation of a binding. `pathNames`: what the variables of its path are called, in order. */
export function operationOf(
  binding: Binding,
  pathNames: readonly string[],
  schemas: MessageSchemas,
): JsonSchema {
  const { method, fields, body, key, expected } = binding;
  const inPath = [...fields.values()];
  const [summary = method.name, ...more] = descriptionOf(method);
  const callers = getOption(method, access);
  const wholeBody = body.kind !== "none" && body.field === undefined;
  const inQuery = wholeBody ? [] : method.input.fields.filter((field) => field !== body.field);
  return {
    operationId: `${method.parent.name}.${method.name}`,
    tags: [method.parent.name],
    summary: firstSentence(summary, method.name),
    description: [afterFirstSentence(summary), ...more].filter((text) => text !== "").join("\n\n"),
    "x-callers": CALLERS[callers] ?? "",
    security: securityOf(method),
    parameters: [
      ...inPath.map((path, index) => pathParameter(path, pathNames[index] ?? "", schemas)),
      ...inQuery
        .filter((field) => hasTextForm(field) && !inPath.some((path) => path[0] === field))
        .map((field) => queryParameter(field, schemas)),
      ...(key.kind === "field" ? [{ ...KEY, schema: textOf(key.field, schemas) }] : []),
      ...(expected ? [EXPECTED] : []),
    ],
    ...(body.kind === "none" ? {} : { requestBody: requestBody(binding, schemas) }),
    responses: answersOf(binding, schemas),
  };
}

/** A body of which no field is required may be left out. */
function requestBody({ method, fields, body }: Binding, schemas: MessageSchemas): JsonSchema {
  const holder = body.field?.message ?? method.input;
  // A variable such as `token.token_id` is in the path, and need not be in the field `token` too.
  const inPath = [...fields.values()].map((path) => path[body.field === undefined ? 0 : 1]);
  const own = holder.fields.filter((field) => !inPath.includes(field));
  const schema = schemas.ofFields(holder, own, {
    writer: "caller",
    isPartial: body.field !== undefined,
  });
  return {
    required: schema.required !== undefined || body.field !== undefined,
    content: { "application/json": { schema } },
  };
}

function pathParameter(
  path: readonly DescField[],
  name: string,
  schemas: MessageSchemas,
): JsonSchema {
  const field = path.at(-1) as DescField;
  const { description, ...schema } = textOf(field, schemas);
  return {
    name,
    in: "path",
    required: true,
    ...(description === undefined ? {} : { description }),
    // An empty segment matches no path.
    schema: { ...schema, ...(schema.type === "string" ? { minLength: 1 } : {}) },
  };
}

function queryParameter(field: DescField, schemas: MessageSchemas): JsonSchema {
  const { description, ...schema } = textOf(field, schemas);
  return {
    name: field.name,
    in: "query",
    ...(isRequired(field, schema) ? { required: true } : {}),
    ...(description === undefined ? {} : { description }),
    schema,
  };
}

/** A field as a path, a query or a header has it. */
function textOf(field: DescField, schemas: MessageSchemas): JsonSchema {
  const schema = schemas.ofField(field, "caller");
  if (schema.format === "int64") {
    const {
      pattern: _,
      minimum = Number.MIN_SAFE_INTEGER,
      maximum = Number.MAX_SAFE_INTEGER,
      ...rest
    } = schema;
    return { ...rest, type: "integer", minimum, maximum };
  }
  // In a query, seconds need no unit.
  return field.message?.typeName === "google.protobuf.Duration"
    ? { ...schema, pattern: String(schema.pattern).replace(/s\$$/, "s?$") }
    : schema;
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
