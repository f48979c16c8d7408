/**
 * HTTP bindings of RPCs, compiled from `google.api.http` at start, so that a
 * wrong annotation is an error at start rather than at a request.
 */
import {
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  getOption,
  hasOption,
} from "@bufbuild/protobuf";
import { http } from "../../../gen/google/api/annotations_pb.js";
import type { HttpRule } from "../../../gen/google/api/http_pb.js";
import { HttpBodySchema } from "../../../gen/google/api/httpbody_pb.js";
import { dotted, hasTextForm, resolveFields } from "./fields.ts";
import { type KeyPlace, keyPlaceOf } from "./idempotency-key.ts";
import { versionFieldOf } from "./if-match.ts";
import type { RestRoute } from "./path-matching.ts";
import { parseTemplate, type Variable } from "./path-template.ts";

/** The binding of a request's body. */
interface BodyBinding {
  /** `raw`: bytes of a `google.api.HttpBody`. */
  readonly kind: "none" | "json" | "raw";
  /** The field that takes the body; undefined: the whole message. */
  readonly field: DescField | undefined;
}

/** One binding of an RPC. */
export interface Binding {
  readonly method: DescMethodUnary | DescMethodServerStreaming;
  /** The fields that each variable of the template names. */
  readonly fields: ReadonlyMap<Variable, readonly DescField[]>;
  readonly body: BodyBinding;
  /** The field for the header `Idempotency-Key`. */
  readonly key: KeyPlace;
  /** The fields that lead to the version that `If-Match` expects; undefined: the call does not look at it. */
  readonly expected: readonly DescField[] | undefined;
  /** The field of the answer that is its `ETag`; undefined: it has none. */
  readonly tag: DescField | undefined;
  /** The field of the answer that is sent; undefined: the whole answer. */
  readonly responseField: DescField | undefined;
  /** True if that is a `google.api.HttpBody`, which is sent as raw bytes. */
  readonly rawResponse: boolean;
}

/** Compiles all routes of the services. Throws an error that names the RPC and what is wrong with its binding. */
export function compileBindings(services: readonly DescService[]): RestRoute<Binding>[] {
  return services
    .flatMap((service) => service.methods)
    .filter((method) => hasOption(method, http))
    .flatMap((method) => {
      const rule = getOption(method, http);
      return [rule, ...rule.additionalBindings].map((one) => compileRule(method, one, rule));
    });
}

function compileRule(method: DescMethod, rule: HttpRule, outer: HttpRule): RestRoute<Binding> {
  const name = `${method.parent.typeName}.${method.name}`;
  try {
    if (method.methodKind !== "unary" && method.methodKind !== "server_streaming") {
      throw new Error("a stream of requests cannot be sent over REST");
    }
    if (rule !== outer && rule.additionalBindings.length > 0) {
      throw new Error("additional_bindings cannot be nested");
    }
    const { verb, text } = patternOf(rule);
    const template = parseTemplate(text);
    const { input, output } = method;
    const fields = new Map(
      template.variables.map((variable) => [variable, pathFields(input, variable)] as const),
    );
    const body = compileBody(input, rule.body);
    if (body.kind !== "none" && [...fields.values()].some((path) => isExactly(path, body.field))) {
      throw new Error(`"${rule.body}" is bound to the body and to the path`);
    }
    const responseField =
      rule.responseBody === "" ? undefined : topField(output, rule.responseBody, "response_body");
    const written = responseField === undefined ? output : singularMessage(responseField);
    const changed = verb === "PATCH" ? body.field : undefined;
    const version = changed?.message && versionFieldOf(changed.message);
    const isResource = (verb === "GET" || verb === "PATCH") && responseField === undefined;
    const binding: Binding = {
      method: method as Binding["method"],
      fields,
      body,
      key: keyPlaceOf(input),
      expected: changed && version && [changed, version],
      tag: isResource ? versionFieldOf(output) : undefined,
      responseField,
      rawResponse: written?.typeName === HttpBodySchema.typeName,
    };
    return { method: verb, template, text: `${text} (${name})`, target: binding };
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`google.api.http of ${name}: ${detail}`, { cause });
  }
}

/** True for the body's field itself; a field inside it may be in the path: `/v1/{book.name}` with `body: "book"`. */
function isExactly(path: readonly DescField[], field: DescField | undefined): boolean {
  return path.length === 1 && path[0] === field;
}

function patternOf({ pattern }: HttpRule): { readonly verb: string; readonly text: string } {
  switch (pattern.case) {
    case undefined:
      throw new Error("no method and path");
    case "custom":
      return { verb: pattern.value.kind, text: pattern.value.path };
    default:
      return { verb: pattern.case.toUpperCase(), text: pattern.value };
  }
}

function pathFields(input: DescMessage, { path }: Variable): readonly DescField[] {
  const fields = resolveFields(input, path);
  const field = fields?.at(-1);
  if (fields === undefined || field === undefined) {
    throw new Error(`"${path.join(".")}" is not a field of ${input.typeName}`);
  }
  if (field.fieldKind === "list" || !hasTextForm(field)) {
    throw new Error(`"${dotted(fields)}" cannot be in a path: only single plain values can`);
  }
  return fields;
}

function compileBody(input: DescMessage, body: string): BodyBinding {
  if (body === "") {
    return { kind: "none", field: undefined };
  }
  const field = body === "*" ? undefined : topField(input, body, "body");
  const target = field === undefined ? input : singularMessage(field);
  return { kind: target?.typeName === HttpBodySchema.typeName ? "raw" : "json", field };
}

function topField(desc: DescMessage, name: string, option: string): DescField {
  const field = desc.fields.find((one) => one.name === name);
  if (field === undefined) {
    throw new Error(`${option} "${name}" is not a field of ${desc.typeName}`);
  }
  return field;
}

function singularMessage(field: DescField): DescMessage | undefined {
  return field.fieldKind === "message" ? field.message : undefined;
}
