/**
 * Out-of-band bodies: request and response bodies that travel in the context
 * of a call, beside its message, because they are too large for it or need no
 * copy in it. Only protocols that can stream offer this; the others have the
 * message alone, which is bounded.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import { createContextKey } from "@connectrpc/connect";
import type { ResponseHead } from "../../protocol/heads.ts";

/** A body as a file argument, beside others. */
export interface FileBeside {
  readonly argument: string;
  readonly fields: JsonObject;
}

/** The streamed body of a request, a form or a file. */
interface StreamedRequest {
  readonly contentType: string;
  readonly chunks: AsyncIterable<Uint8Array>;
  /** How much of it may be held in memory. */
  readonly maxHeldBytes: number;
  /** Takes the bytes held so far from the server's budget. Errors: SERVER_BUSY. */
  hold(bytes: number): void;
  /** Present for a file. */
  readonly beside?: FileBeside;
}

/** The streamed body of an answer. */
export interface StreamedResponse {
  /** In bytes. */
  readonly size: number;
  /** Digest of the bytes, in base64url. */
  readonly sha256: string;
  /** The bytes from `start` up to, but not including, `end`. */
  read(range: { readonly start: number; readonly end: number }): AsyncIterable<Uint8Array>;
  /** Releases the body. */
  done(): void;
}

/** The bodies of one call. */
export interface StreamedBodies {
  request?: StreamedRequest;
  /** Set by the implementation, which then leaves the body in the message empty. */
  response?: StreamedResponse;
  /** The same for a body that exists as text, to avoid its conversion to bytes and back. */
  text?: string;
  /** What the function said of its answer; protocols that have no place for it leave it out. */
  head?: ResponseHead;
}

/** Present if the protocol can stream. */
export const streamedBodies = createContextKey<StreamedBodies | undefined>(undefined, {
  description: "bodies beside the message",
});
