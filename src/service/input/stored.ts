/** Validates arguments stored under one revision of a service against another revision. */
import { parseLenient } from "../../collections/exact-json.ts";
import type { FieldViolation } from "../../errors.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";
import type { Payload } from "../../protocol/messages.ts";
import { fileViolation } from "./file.ts";
import type { SchemaCheck } from "./schema-check.ts";

/** What is wrong with stored arguments; undefined when they fit. */
export function storedViolation(
  { files: arguments_ }: Pick<EndpointManifest, "files">,
  check: SchemaCheck,
  payload: Payload,
): FieldViolation | undefined {
  const { value, isExact } = parseLenient(payload.json);
  const fields = value as Record<string, unknown>;
  const used = new Set<number>();
  for (const [name, argument] of Object.entries(arguments_)) {
    const given = Object.hasOwn(fields, name) ? [fields[name]].flat() : undefined;
    delete fields[name];
    const files = given?.map((index) => payload.files[Number(index)]);
    if (files?.some((file) => file === undefined)) {
      return { field: name, description: "must be a file" };
    }
    const description = fileViolation(
      argument,
      files?.filter((file) => file !== undefined),
    );
    if (description !== undefined) {
      return { field: name, description };
    }
    for (const index of given ?? []) {
      used.add(Number(index));
    }
  }
  // No validator knows the numbers of Python that JSON does not have.
  const [first] = isExact ? check(fields).violations : [];
  if (first === undefined && used.size < payload.files.length) {
    return { field: "", description: "have a file where none is taken" };
  }
  return first;
}
