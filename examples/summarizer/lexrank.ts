/**
 * Ranks sentences by LexRank: Erkan, Radev, "LexRank: Graph-based lexical
 * centrality as salience in text summarization", Journal of Artificial
 * Intelligence Research 22, 2004, in its continuous form (section 3.3).
 *
 * A sentence is central when it is similar to many sentences that are central
 * themselves. Similarity is the cosine between sentences as vectors of tf·idf;
 * centrality is the stationary distribution of a walk that goes from sentence
 * to sentence in proportion to it, and now and then jumps anywhere: PageRank.
 */

/** The share of steps that jump anywhere; the value of the paper and of PageRank. */
const JUMP_SHARE = 0.15;
/** The walk has settled when a step changes all probabilities together by less. */
const TOLERANCE = 1e-6;
const MAX_STEPS = 200;

/** A symmetric square table of similarities from 0 to 1. */
export interface Similarities {
  readonly size: number;
  of(row: number, column: number): number;
}

/** Where a word occurs: sentences in ascending order, and its weight in each. */
interface Occurrences {
  readonly sentences: number[];
  readonly weights: number[];
}

/**
 * Cosine similarity of every pair of sentences, each given as its words. A
 * sentence without words is similar to none.
 */
export function similarities(sentences: readonly (readonly string[])[]): Similarities {
  const size = sentences.length;
  const cosines = new Float32Array(size * size);
  for (const { sentences: places, weights } of weighWords(sentences)) {
    for (let i = 0; i < places.length; i++) {
      const row = places[i]! * size;
      for (let j = i; j < places.length; j++) {
        cosines[row + places[j]!]! += weights[i]! * weights[j]!;
      }
    }
  }
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < row; column++) {
      cosines[row * size + column] = cosines[column * size + row]!;
    }
  }
  return { size, of: (row, column) => cosines[row * size + column]! };
}

/** All words with their tf·idf, scaled so that each sentence is a vector of length 1. */
function weighWords(sentences: readonly (readonly string[])[]): Occurrences[] {
  const byWord = new Map<string, Occurrences>();
  for (const [sentence, words] of sentences.entries()) {
    for (const [word, count] of countWords(words)) {
      const occurrences = byWord.get(word) ?? { sentences: [], weights: [] };
      occurrences.sentences.push(sentence);
      occurrences.weights.push(count);
      byWord.set(word, occurrences);
    }
  }
  const all = [...byWord.values()];
  const squares = new Float64Array(sentences.length);
  for (const { sentences: places, weights } of all) {
    const rarity = Math.log(1 + sentences.length / places.length);
    for (const [i, place] of places.entries()) {
      weights[i]! *= rarity;
      squares[place]! += weights[i]! ** 2;
    }
  }
  for (const { sentences: places, weights } of all) {
    for (const [i, place] of places.entries()) {
      weights[i]! /= Math.sqrt(squares[place]!);
    }
  }
  return all;
}

function countWords(words: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const word of words) {
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return counts;
}

/** How central each sentence is; the ranks sum to 1. */
export function rank(graph: Similarities): Float64Array {
  const { size } = graph;
  const degrees = Float64Array.from({ length: size }, (_, row) => degree(graph, row));
  let ranks = new Float64Array(size).fill(1 / size);
  for (let step = 0; step < MAX_STEPS; step++) {
    const next = walk(graph, degrees, ranks);
    const change = next.reduce((sum, value, i) => sum + Math.abs(value - ranks[i]!), 0);
    ranks = next;
    if (change < TOLERANCE) {
      break;
    }
  }
  return ranks;
}

function degree(graph: Similarities, row: number): number {
  let sum = 0;
  for (let column = 0; column < graph.size; column++) {
    sum += graph.of(row, column);
  }
  return sum;
}

/** One step of the walk. From a sentence that is similar to none it can only jump. */
function walk(graph: Similarities, degrees: Float64Array, ranks: Float64Array) {
  const { size } = graph;
  const next = new Float64Array(size);
  let jumping = 0;
  for (let row = 0; row < size; row++) {
    const followed = degrees[row] === 0 ? 0 : (1 - JUMP_SHARE) * ranks[row]!;
    jumping += ranks[row]! - followed;
    const share = followed / (degrees[row] || 1);
    for (let column = 0; column < size; column++) {
      next[column]! += share * graph.of(row, column);
    }
  }
  return next.map((value) => value + jumping / size);
}
