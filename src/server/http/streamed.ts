/**
 * Bodies that are too large to stand in a message, or that need not: they go
 * beside it, in the context of the call. Only faces over HTTP that can stream
 * offer this; for the others a message is all there is, and bounded.
 */
import { createContextKey } from "@connectrpc/connect";

/** The body of a request, read as it arrives; of multipart/form-data. */
export interface StreamedRequest {
  readonly contentType: string;
  readonly chunks: AsyncIterable<Uint8Array>;
  /** What of it may be held in memory. */
  readonly maxHeldBytes: number;
  /** Told how much is held so far. Errors: SERVER_BUSY. */
  hold(bytes: number): void;
}

/** The body of an answer, read as it is sent. */
export interface StreamedResponse {
  /** In bytes. */
  readonly size: number;
  /** Digest of the bytes, in base64url. */
  readonly sha256: string;
  /** The bytes from `start` to before `end`. */
  read(range: { readonly start: number; readonly end: number }): AsyncIterable<Uint8Array>;
  /** They are not needed any more. */
  done(): void;
}

/** Both sides of one call. */
export interface StreamedBodies {
  request?: StreamedRequest;
  /** Set by the implementation, where the body of its message is then empty. */
  response?: StreamedResponse;
  /** The same for a body that is at hand as text: as bytes it would only be made text again. */
  text?: string;
}

/** Present where the face can stream. */
export const streamedBodies = createContextKey<StreamedBodies | undefined>(undefined, {
  description: "bodies beside the message",
});
