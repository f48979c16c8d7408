/**
 * Splits text into sentences: Unicode's rules for sentence boundaries (UAX 29,
 * through `Intl.Segmenter`), run on one paragraph at a time, then repairs for
 * what these rules cannot know. A piece belongs to the one before it
 *
 * - after a title or abbreviation that is never the last word ("Dr. Smith");
 * - after one that counts something, before a number ("Fig. 3");
 * - after an initial ("J. S. Bach", "the U.S. Navy"), unless it begins with a
 *   small word, as new sentences do ("vitamin C. Then");
 * - when it begins in lower case or closes a quotation ("“Really?” she asked").
 */
import { isStopWord } from "./words.ts";

const SEGMENTER = new Intl.Segmenter("en", { granularity: "sentence" });
/** How many characters before a piece are looked at; abbreviations are shorter. */
const LOOK_BACK = 12;
const PARAGRAPH_BREAK = /\n\s*\n/u;
const AFTER_TITLE =
  /(?:^|[\s(“"'])(?:Dr|Mr|Mrs|Ms|Prof|Rev|Hon|St|Gen|Col|Capt|Lt|Sgt|Sen|Gov|vs|cf|e\.g|i\.e|approx)\.$/u;
const AFTER_COUNTER =
  /(?:^|[\s(])(?:No|Nos|Fig|Figs|Eq|vol|p|pp|ca?|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.$/u;
const AFTER_INITIAL = /(?:^|[\s(“"'.])\p{Lu}\.$/u;
const INITIAL = /^\p{Lu}\./u;
const FIRST_WORD = /^\p{Lu}[\p{L}’']*/u;
const CLOSED = /[.!?…。！？｡।؟۔][”’"'»)\]」』]*$/u;

/** The sentences of a text, in order, white space in them reduced to single spaces. */
export function splitSentences(text: string): string[] {
  return text.split(PARAGRAPH_BREAK).flatMap(splitParagraph);
}

/** Whether a sentence ends in a full stop or its like; headings do not. */
export function isClosed(sentence: string): boolean {
  return CLOSED.test(sentence);
}

function splitParagraph(paragraph: string): string[] {
  const line = paragraph.replaceAll(/\s+/gu, " ").trim();
  const starts: number[] = [];
  for (const { segment: piece, index } of SEGMENTER.segment(line)) {
    const before = line.slice(Math.max(0, index - LOOK_BACK), index).trimEnd();
    if (before === "" || !continues(before, piece)) {
      starts.push(index);
    }
  }
  return starts.map((start, i) => line.slice(start, starts[i + 1]).trim());
}

/** Whether a piece goes on with the sentence that ends in `end`. */
function continues(end: string, piece: string): boolean {
  if (AFTER_TITLE.test(end) || /^[\p{Ll}”’»)\]]/u.test(piece)) {
    return true;
  }
  if (AFTER_COUNTER.test(end)) {
    return /^[\d(]/u.test(piece);
  }
  return AFTER_INITIAL.test(end) && (INITIAL.test(piece) || beginsWithName(piece));
}

function beginsWithName(piece: string): boolean {
  const firstWord = FIRST_WORD.exec(piece)?.[0];
  return firstWord !== undefined && !isStopWord(firstWord);
}
