/**
 * A text that somebody else chose, within a sentence of ours that goes on after it: marks isolate
 * it, so that its writing direction ends with it (UAX #9, FSI and PDI). Elements take `<bdi>`.
 */
export const isolated = (text: string | undefined): string => `\u2068${text ?? ""}\u2069`;
