/** Content negotiation by `Accept` (RFC 9110, section 12.5.1). */

interface MediaRange {
  readonly type: string;
  readonly subtype: string;
  /** From 0 to 1. */
  readonly quality: number;
}

/**
 * The media type that a client likes best of those that are offered, the preferred one first;
 * undefined if it takes none. Of types that it likes alike, one that it names goes before one
 * that it takes by a wildcard.
 */
export function preferredType<Type extends string>(
  accept: string | undefined,
  offered: readonly Type[],
): Type | undefined {
  if (accept === undefined) {
    return offered[0];
  }
  const ranges = accept.split(",").map(readRange);
  let best: { readonly type: Type; readonly rank: number } | undefined;
  for (const type of offered) {
    const rank = rankOf(type, ranges);
    if (rank > (best?.rank ?? 0)) {
      best = { type, rank };
    }
  }
  return best?.type;
}

/** 0 for a type that is not taken. The most specific range decides on its quality. */
function rankOf(offered: string, ranges: readonly MediaRange[]): number {
  const [type = "", subtype = ""] = (offered.split(";", 1)[0] ?? "").split("/");
  let specificity = 0;
  let quality = 0;
  for (const range of ranges) {
    const fits =
      (range.type === "*" || range.type === type) &&
      (range.subtype === "*" || range.subtype === subtype);
    const own = 1 + Number(range.type !== "*") + Number(range.subtype !== "*");
    if (fits && own > specificity) {
      specificity = own;
      quality = range.quality;
    }
  }
  // Qualities have three digits.
  return quality === 0 ? 0 : quality * 10_000 + specificity;
}

function readRange(text: string): MediaRange {
  const [range = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase());
  const [type = "", subtype = ""] = range.split("/");
  const quality = parameters.find((each) => /^q\s*=/.test(each))?.replace(/^q\s*=\s*/, "");
  const value = Number(quality ?? 1);
  return { type, subtype, quality: value >= 0 && value <= 1 ? value : 0 };
}
