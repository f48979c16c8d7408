/**
 * Regexes of selectors: RE2, anchored on both sides, dot matches newline.
 *
 * They come from callers, so their time must be linear in the value and bounded
 * by the pattern. The engine is RE2's, and a pattern with a large program is
 * refused before it is compiled. Most patterns are only literals separated by
 * `|`, or a literal before or after `.*`; those need no engine.
 */
import { RE2JS } from "re2js";

export type Pattern = (value: string) => boolean;

interface CompiledPattern {
  readonly matches: Pattern;
  /** Instructions of its program; 0 without one. */
  readonly cost: number;
}

/** One regex of a selector. */
const MAX_REGEX_CHARACTERS = 1_000;

/**
 * Program of one regex: one of this size is compiled, and run on a label, in a few
 * milliseconds.
 */
const MAX_REGEX_STEPS = 2_000;

/** Label values whose match a regex remembers: labels have few values, and series many. */
const MAX_REMEMBERED_LABELS = 10_000;

/** A pattern without special characters. */
const LITERAL = /^[^\\^$.|?*+()[\]{}]*$/;
const LITERALS = /^(?:[^\\^$.?*+()[\]{}]*|\((?:\?:)?[^\\^$.?*+()[\]{}]*\))$/;

/** Compiles a pattern. Throws an Error with the reason when it is invalid or too large. */
export function compilePattern(source: string): CompiledPattern {
  const simple = withoutEngine(source);
  if (simple) {
    return { matches: simple, cost: 0 };
  }
  if (source.length > MAX_REGEX_CHARACTERS) {
    throw new Error(
      `a regexp may have ${MAX_REGEX_CHARACTERS} characters, this one has ${source.length}`,
    );
  }
  if (!source.isWellFormed()) {
    throw new Error("error parsing regexp: invalid UTF-8");
  }
  const size = sizeOf(source);
  if (size > MAX_REGEX_STEPS) {
    throw new Error(
      `a regexp may become ${MAX_REGEX_STEPS} steps long, this one would have about ${size}: repeat less in it`,
    );
  }
  const program = compile(source);
  const remembered = new Map<string, boolean>();
  const matches = (value: string): boolean => {
    const known = remembered.get(value);
    if (known !== undefined) {
      return known;
    }
    const answer = program.matches(value);
    if (remembered.size < MAX_REMEMBERED_LABELS) {
      remembered.set(value, answer);
    }
    return answer;
  };
  return { matches, cost: size };
}

/** Returns an equivalent matcher for patterns that need no engine. */
function withoutEngine(source: string): Pattern | undefined {
  if (LITERAL.test(source)) {
    return (value) => value === source;
  }
  if (LITERALS.test(source)) {
    const texts = new Set(source.replace(/^\((?:\?:)?|\)$/g, "").split("|"));
    return (value) => texts.has(value);
  }
  if (source === ".+") {
    return (value) => value !== "";
  }
  const before = source.startsWith(".*") ? 2 : 0;
  const after = source.endsWith(".*") && source.length >= before + 2 ? 2 : 0;
  const text = source.slice(before, source.length - after);
  if (!LITERAL.test(text) || before + after === 0) {
    return undefined;
  }
  if (before === 0) {
    return (value) => value.startsWith(text);
  }
  return after === 0 ? (value) => value.endsWith(text) : (value) => value.includes(text);
}

/**
 * Estimates the number of instructions without compiling: each atom is one, and
 * a repetition counts its atom as often as it may repeat. An invalid regex is
 * counted too; the engine then refuses it.
 */
function sizeOf(source: string): number {
  const folds = /\(\?[a-zA-Z]*i/.test(source);
  const outer: { total: number; last: number }[] = [];
  let level = { total: 0, last: 0 };
  const add = (size: number): void => {
    level.total += size;
    level.last = size;
  };
  for (const [part, , , repeat] of source.matchAll(PARTS)) {
    if (part.startsWith("(")) {
      outer.push(level);
      level = { total: 2, last: 0 };
    } else if (part === ")") {
      const { total } = level;
      level = outer.pop() ?? { total: 0, last: 0 };
      add(total);
    } else if (repeat !== undefined) {
      const times = Math.max(...repeat.split(",").map(Number));
      const more = level.last * Math.max(times - 1, 0);
      level.total += more;
      level.last += more;
    } else {
      add(atomSize(part, folds));
    }
  }
  // Unclosed groups count as well.
  return outer.reduce((sum, { total }) => sum + total, level.total);
}

/** Unicode classes are long lists, and case folding expands a range character by character. */
const PROPERTY_SIZE = 10;
const FOLDED_RANGE_SIZE = 400;

function atomSize(part: string, folds: boolean): number {
  if (part.startsWith("\\Q")) {
    return part.length;
  }
  const properties = part.match(/\\[pP]/g)?.length ?? 0;
  const ranges = folds ? (part.match(/-(?:\\x\{|[^\0-\x7f])/g)?.length ?? 0) : 0;
  return 1 + properties * PROPERTY_SIZE + ranges * FOLDED_RANGE_SIZE;
}

/** Prometheus allows duplicate group names, this engine does not; they have no meaning here. */
function compile(source: string): RE2JS {
  try {
    return RE2JS.compile(source, RE2JS.DOTALL);
  } catch (err) {
    if (!String(err).includes("duplicate capture group name")) {
      throw asGiven(err, source, source);
    }
    const nameless = source.replace(PARTS, (part) => (/^\(\?P?</.test(part) ? "(" : part));
    try {
      return RE2JS.compile(nameless, RE2JS.DOTALL);
    } catch (other) {
      throw asGiven(other, nameless, source);
    }
  }
}

/** The engine's error, which quotes the whole regex as it was compiled, quoting what was given. */
function asGiven(err: unknown, compiled: string, source: string): Error {
  const message = err instanceof Error ? err.message : String(err);
  return new Error(
    message.replace(`\`(?s)${compiled}\``, () => `\`${source}\``),
    { cause: err },
  );
}

/** A quoted text, an escape, a class, a repetition with its counts, a group, or a character. */
const PARTS =
  /(\\Q[\s\S]*?(?:\\E|$))|\\[pP]\{[^}]*\}|\\[\s\S]|(\[\^?\]?(?:\[:\^?\w+:\]|\\[\s\S]|[^\]\\])*\])|\{(\d+(?:,\d*)?)\}|\(\?(?:[a-zA-Z-]*:|P?<\w+>)|[\s\S]/gu;
