/**
 * The window of a streamed result: pieces that a worker has sent and that nobody has consumed. It
 * is counted in bytes on both sides, from the same pieces in the same order, so that the node only
 * says how many pieces were consumed.
 */

/**
 * A worker may send a further piece of a call while those that are not consumed cost less than
 * this. So they cost at most this and one piece more.
 */
export const STREAM_WINDOW_BYTES = 256 * 1024;

/** What a small piece costs: it takes memory beyond its bytes, and 32 fill a window. */
const MIN_PIECE_COST_BYTES = 8 * 1024;

/** What a piece costs in its window, in bytes: its own, in UTF-8, but no less than a small one. */
function pieceCost(data: string | Uint8Array): number {
  const bytes = typeof data === "string" ? Buffer.byteLength(data) : data.byteLength;
  return Math.max(bytes, MIN_PIECE_COST_BYTES);
}

/** The pieces of one call that were sent and not consumed, in their order. */
export class StreamWindow {
  readonly #costs: number[] = [];
  #left = STREAM_WINDOW_BYTES;

  /** Whether a further piece may be sent. */
  get isOpen(): boolean {
    return this.#left > 0;
  }

  sent(data: string | Uint8Array): void {
    const cost = pieceCost(data);
    this.#costs.push(cost);
    this.#left -= cost;
  }

  /** What the first `count` of them cost. */
  costOf(count: number): number {
    return sumOf(this.#costs.slice(0, count));
  }

  /** The first `count` of them were consumed. */
  consumed(count: number): void {
    this.#left += sumOf(this.#costs.splice(0, count));
  }
}

function sumOf(costs: readonly number[]): number {
  return costs.reduce((sum, each) => sum + each, 0);
}
