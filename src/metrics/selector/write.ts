/**
 * The serializer of selectors. It writes from the parsed form only, so no
 * unparsed text of a caller gets through.
 */
import { LABEL_NAME } from "../labels.ts";
import type { Matcher, Selector } from "./parse.ts";

/** Writes `{__name__="up",job=~"a|b"}`, which every version of Prometheus reads. */
export function writeSelector({ matchers }: Selector): string {
  return `{${matchers.map(writeMatcher).join(",")}}`;
}

function writeMatcher({ label, operator, value }: Matcher): string {
  return `${LABEL_NAME.test(label) ? label : quote(label)}${operator}${quote(value)}`;
}

/** The surrogate of a lone byte: see `readQuoted`. */
const LONE_BYTE = 0xdc00;

/** Writes an ASCII literal. */
function quote(text: string): string {
  let quoted = "";
  for (const character of text) {
    const code = character.codePointAt(0) as number;
    if (character === '"' || character === "\\") {
      quoted += `\\${character}`;
    } else if (code >= 0x20 && code < 0x7f) {
      quoted += character;
    } else if (code >= LONE_BYTE && code <= LONE_BYTE + 0xff) {
      quoted += `\\x${(code - LONE_BYTE).toString(16).padStart(2, "0")}`;
    } else {
      quoted += `\\U${code.toString(16).padStart(8, "0")}`;
    }
  }
  return `"${quoted}"`;
}
