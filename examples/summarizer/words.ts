/**
 * Words that carry no subject of their own: the closed classes of English
 * (articles, pronouns, prepositions, conjunctions, auxiliaries) and the most
 * general adverbs.
 */
const STOP_WORDS = new Set(
  `a an the this that these those each every either neither both all any some such no none other
  another same own few several many much more most less least enough i me my mine myself we us our
  ours ourselves you your yours yourself yourselves he him his himself she her hers herself it its
  itself they them their theirs themselves one ones who whom whose which what whatever someone
  anyone everyone nobody nothing something anything everything there here where when why how about
  above across after against along among around as at before behind below beneath beside between
  beyond by despite down during except for from in inside into like near of off on onto out outside
  over past per since through throughout till to toward towards under until up upon via with within
  without and or but nor so yet if then else because although though unless while whereas whether
  than am is are was were be been being do does did doing done have has had having can could may
  might must shall should will would cannot not never always often sometimes usually already also
  again almost even ever just only quite rather really soon still too very now once perhaps however
  therefore thus instead meanwhile indeed let get got gets s t d ll re ve m don didn doesn isn wasn
  weren aren couldn wouldn shouldn won hasn haven hadn`.split(/\s+/u),
);

const SEGMENTER = new Intl.Segmenter("en", { granularity: "word" });

/** Whether a word is one of the small words that every English text is full of. */
export function isStopWord(word: string): boolean {
  return STOP_WORDS.has(word.toLowerCase().replaceAll("’", "'").split("'")[0]!);
}

/**
 * The words of a text that carry its subject: by Unicode's word boundaries, so
 * that scripts without spaces work too; in lower case, without stop words,
 * plurals reduced.
 */
export function contentWords(text: string): string[] {
  const words: string[] = [];
  for (const { segment, isWordLike } of SEGMENTER.segment(text)) {
    if (isWordLike && !isStopWord(segment)) {
      words.push(singular(segment.toLowerCase().replace(/['’]s?$/u, "")));
    }
  }
  return words;
}

/**
 * Reduces English plurals with the "S" stemmer: Harman, "How effective is
 * suffixing?", Journal of the American Society for Information Science 42, 1991.
 */
function singular(word: string): string {
  if (/[^ea]ies$/u.test(word)) {
    return `${word.slice(0, -3)}y`;
  }
  if (/[^aeo]es$/u.test(word) || /[^us]s$/u.test(word)) {
    return word.slice(0, -1);
  }
  return word;
}
