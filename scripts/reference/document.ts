/** The parts of an OpenAPI document that its page shows. */
import type { JsonSchema } from "../../src/protocol/manifest.ts";

export interface Document {
  readonly tags: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: { readonly [path: string]: { readonly [method: string]: Operation } };
  readonly components: JsonSchema;
}

export interface Operation {
  readonly tags: readonly [string];
  readonly summary: string;
  readonly description?: string;
  readonly "x-callers"?: string;
  readonly parameters?: readonly JsonSchema[];
  readonly requestBody?: { readonly content: { readonly [type: string]: Content } };
  readonly responses: { readonly [status: string]: JsonSchema };
}

export interface Content {
  readonly schema: JsonSchema;
  readonly example?: unknown;
}

/** An operation with its place in the document. */
export interface Place {
  readonly document: Document;
  readonly path: string;
  /** The first is the one that examples use. */
  readonly methods: readonly string[];
  readonly operation: Operation;
}
