/** Extractive summaries by LexRank and maximal marginal relevance. */
import { rank, type Similarities, similarities } from "./lexrank.ts";
import { isClosed, splitSentences } from "./sentences.ts";
import { contentWords } from "./words.ts";

/** How many sentences a text may have: time and memory grow with the square. */
export const MAX_SENTENCES = 2_000;

/** How much centrality counts beside novelty. */
const CENTRALITY_SHARE = 0.7;
/** Characters below which a sentence says too little by itself. */
const MIN_LENGTH = 40;
const REFERS_BACK =
  /^(?:It|Its|He|She|His|Her|They|Their|This|That|These|Those|Such|But|And|So|Or|Yet|Then|Thus|Therefore|However)\b/u;
const NO_SPACE_AFTER = /[。！？｡][」』]?$/u;

/** A text has more sentences than `MAX_SENTENCES`. */
export class TextTooLong extends Error {
  override readonly name = "TextTooLong";
}

/**
 * The most telling sentences of a text, in their original order and wording:
 * ranked by LexRank, then chosen one by one so that none repeats what is
 * already chosen. Headings are left out as long as there are sentences enough.
 *
 * @param count How many sentences; all of them when the text has no more.
 * @throws TextTooLong beyond `MAX_SENTENCES`.
 */
export function summarize(text: string, count: number): string {
  const sentences = splitSentences(text);
  if (sentences.length > MAX_SENTENCES) {
    const limit = MAX_SENTENCES.toLocaleString("en");
    throw new TextTooLong(
      `the text has ${sentences.length.toLocaleString("en")} sentences, at most ${limit} are possible; send it in parts`,
    );
  }
  const graph = similarities(sentences.map(contentWords));
  return choose(graph, eligible(sentences, count), count)
    .map((index) => sentences[index]!)
    .reduce(join, "");
}

/**
 * Indices of what can stand in a summary: no headings, nothing very short,
 * nothing that refers back to a sentence that may be missing. Each group is
 * allowed again when too few would remain. (All of them have a say in what is
 * central: a heading most of all.)
 */
function eligible(sentences: readonly string[], count: number): number[] {
  const all = [...sentences.keys()];
  const closed = all.filter((index) => isClosed(sentences[index]!));
  const telling = closed.filter((index) => sentences[index]!.length >= MIN_LENGTH);
  const independent = telling.filter((index) => !REFERS_BACK.test(sentences[index]!));
  return [independent, telling, closed].find((list) => list.length >= count) ?? all;
}

/**
 * Maximal marginal relevance: Carbonell, Goldstein, "The use of MMR,
 * diversity-based reranking for reordering documents and producing summaries",
 * SIGIR 1998. Returns indices in ascending order.
 */
function choose(graph: Similarities, among: readonly number[], count: number): number[] {
  const ranks = rank(graph);
  const highest = among.reduce((high, index) => Math.max(high, ranks[index]!), 0);
  const left = new Set(among);
  const repeated = new Float64Array(graph.size);
  const chosen: number[] = [];
  while (chosen.length < count && left.size > 0) {
    let best = -1;
    let bestScore = Number.NEGATIVE_INFINITY;
    for (const index of left) {
      const centrality = ranks[index]! / highest;
      const score = CENTRALITY_SHARE * centrality - (1 - CENTRALITY_SHARE) * repeated[index]!;
      if (score > bestScore) {
        best = index;
        bestScore = score;
      }
    }
    left.delete(best);
    chosen.push(best);
    for (const index of left) {
      repeated[index] = Math.max(repeated[index]!, graph.of(index, best));
    }
  }
  return chosen.sort((a, b) => a - b);
}

/** Sentences stand one space apart, except in scripts that use none. */
function join(summary: string, sentence: string): string {
  const space = summary === "" || NO_SPACE_AFTER.test(summary) ? "" : " ";
  return summary + space + sentence;
}
