/** Values of what the server sends, which may be joined by others one day. */
import type { JsonSchema } from "../../protocol/manifest.ts";

/**
 * A text that is one of these today. A closed `enum` would make generated clients refuse an answer
 * with a new value, so the values stand in an extension that tools show and do not check.
 */
export function openEnum(values: readonly string[]): JsonSchema & { readonly type: "string" } {
  return { type: "string", "x-extensible-enum": [...values] };
}
