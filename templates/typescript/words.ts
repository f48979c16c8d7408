/** Counts the words of a text, in any language. */
export function countWords(text: string): number {
  const segments = new Intl.Segmenter(undefined, { granularity: "word" }).segment(text);
  return [...segments].filter(({ isWordLike }) => isWordLike).length;
}
