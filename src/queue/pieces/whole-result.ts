/**
 * The whole of a streamed result, made from its stored pieces when the function has ended: a
 * JSON array, one text, or one file. It is read and kept in chunks, so a large one holds up
 * neither the event loop nor memory, and goes to the blob store as other large results do.
 */
import type { FileKeeper } from "../../files/keeper.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";
import type { FileFacts, Payload } from "../../protocol/messages.ts";
import { pieceTypeOf } from "../../service/piece-type.ts";
import type { PieceForm, PiecePosition, PieceStorage } from "../../storage/pieces.ts";
import type { Attempt } from "../../storage/storage.ts";

/** Stored pieces read at once. */
const PIECES_READ_BYTES = 256 * 1024;

/** Thrown when pieces are missing: the attempt has lost its lease, and no end of it counts. */
export class PiecesGone extends Error {
  override readonly name = "PiecesGone";
}

interface StreamedAttempt {
  readonly attempt: Attempt;
  readonly form: PieceForm;
  /** How many pieces it gave. */
  readonly count: number;
}

interface WholeResultOptions {
  readonly storage: Pick<PieceStorage, "readPieces">;
  readonly keeper: FileKeeper;
  readonly endpoint: EndpointManifest;
}

/** Rejects with STORAGE_UNAVAILABLE, or with `PiecesGone`. */
export async function wholeResult(
  streamed: StreamedAttempt,
  { storage, keeper, endpoint }: WholeResultOptions,
): Promise<Payload> {
  const facts: FileFacts = { contentType: pieceTypeOf(streamed.form, endpoint) };
  const kept = await keeper.keep(facts, chunksOf(streamed, storage));
  if (streamed.form === "bytes") {
    return { json: "0", files: [kept] };
  }
  if ("blob" in kept) {
    return { json: "", files: [], text: kept };
  }
  const text = Buffer.from(kept.data.buffer, kept.data.byteOffset, kept.data.length).toString();
  return { json: streamed.form === "json" ? text : JSON.stringify(text), files: [] };
}

/** The bytes of the whole, one chunk for each page of pieces. */
async function* chunksOf(
  { attempt, form, count }: StreamedAttempt,
  storage: WholeResultOptions["storage"],
): AsyncGenerator<Uint8Array> {
  const { deploymentId, taskId, attempt: number } = attempt;
  const isJson = form === "json";
  let after: PiecePosition = { attempt: number, sequence: 0 };
  if (isJson) {
    yield Buffer.from("[");
  }
  while (after.sequence < count) {
    const asked = { deploymentId, taskId, after, maxBytes: PIECES_READ_BYTES };
    const page = await storage.readPieces(asked);
    const last = page?.task.attempt === number ? page.pieces.at(-1) : undefined;
    if (page === undefined || last === undefined) {
      throw new PiecesGone(`piece ${after.sequence + 1} of attempt ${number} of ${taskId} is gone`);
    }
    const separator = isJson && after.sequence > 0 ? "," : "";
    const parts = page.pieces.map(({ data }) => data);
    yield typeof parts[0] === "string"
      ? Buffer.from(separator + parts.join(isJson ? "," : ""))
      : Buffer.concat(parts as Uint8Array[]);
    after = { attempt: number, sequence: last.sequence };
  }
  if (isJson) {
    yield Buffer.from("]");
  }
}
