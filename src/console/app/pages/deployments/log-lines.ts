/** Lines of a log: which of them a filter leaves, how many there were over time, and how they are written. */
import type {
  DeploymentEndpointJson,
  DeploymentLogLineJson,
} from "../../../../../gen/tessera/v1/deployment_pb.js";
import type { RunOf } from "../../api/runs.ts";
import { counted } from "../../ui/counted.ts";
import type { TimeBounds } from "../../ui/time-range.ts";
import { LEVELS, type ShownLevel } from "./log-search.ts";

type LevelCounts = Readonly<Record<ShownLevel, number>>;

export interface ShownLine {
  /** Counts the lines of the deployment without gaps. */
  readonly sequence: number;
  readonly timeMs: number;
  readonly level: ShownLevel;
  readonly text: string;
  /** The line as the server sent it. */
  readonly sent: DeploymentLogLineJson;
}

/** Lines that a page keeps: as many as the server. */
export const MAX_LINES = 10_000;

/** Characters of all lines that a page keeps. */
const MAX_CHARACTERS = 16 * 1024 * 1024;

/** Characters of a line that is folded. */
const MAX_FOLDED_CHARACTERS = 600;

/** Characters before the place that was searched for in a line that is folded. */
const BEFORE_MARK_CHARACTERS = 40;

/** Places that are marked in one line. */
const MAX_MARKS = 20;

/** Begins the colours and the like of a terminal (ECMA-48), which some libraries write to any output. */
const ESCAPE = "\u001b";
const TERMINAL_CODES = new RegExp(`${ESCAPE}\\[[0-9;?]*[A-Za-z]`, "g");

export function readLine(sent: DeploymentLogLineJson): ShownLine {
  const { sequence, time = "", level, text = "" } = sent;
  return {
    sequence: Number(sequence),
    timeMs: Date.parse(time),
    level: LEVELS.find((one) => one === level) ?? "info",
    text: text.replace(TERMINAL_CODES, ""),
    sent,
  };
}

/** The newest lines that a page keeps. */
export function kept(lines: readonly ShownLine[]): readonly ShownLine[] {
  let first = lines.length;
  for (let characters = 0; first > 0 && lines.length - first < MAX_LINES; first -= 1) {
    characters += lines[first - 1]?.text.length ?? 0;
    if (characters > MAX_CHARACTERS) {
      break;
    }
  }
  return first === 0 ? lines : lines.slice(first);
}

/** Whether a line repeats the shown one before it, also in the endpoint, with which its text begins. */
export const isRepeat = (line: ShownLine, before: ShownLine): boolean =>
  line.level === before.level && line.text === before.text;

/** The same for a log that shows all its lines, where a gap between two of them stays visible. */
export const isRepeatAtOnce = (line: ShownLine, before: ShownLine): boolean =>
  line.sequence === before.sequence + 1 && isRepeat(line, before);

/** What lines have in common; empty where they differ. */
export function commonOf(lines: RunOf<ShownLine>, of: (line: ShownLine) => string): string {
  const first = of(lines[0]);
  return lines.every((line) => of(line) === first) ? first : "";
}

/** The kinds of a deployment's endpoints, by name. */
export type Kinds = ReadonlyMap<string, DeploymentEndpointJson["kind"]>;

/** The endpoint of a line, and its text. */
interface LineParts {
  /** The endpoint whose function wrote it; empty for other lines. */
  readonly of: string;
  readonly rest: string;
}

/** Splits the endpoint from `predict: done` and from `predict failed: Error: no`, which the level says as well. */
export function partsOf(text: string, kinds: Kinds): LineParts {
  const end = text.search(/: | failed: /);
  const of = end === -1 ? "" : text.slice(0, end);
  return kinds.has(of)
    ? { of, rest: text.slice(end).replace(/^(?: failed)?: /, "") }
    : { of: "", rest: text };
}

interface LineFilter {
  readonly search: string;
  readonly task: string;
  /** All levels if it is empty. */
  readonly levels: readonly ShownLevel[];
  readonly range: Partial<TimeBounds>;
}

/** The lines that a filter leaves, and how many of each level it would leave without its levels. */
export function filtered(
  all: readonly ShownLine[],
  { search, task, levels, range }: LineFilter,
): { readonly lines: readonly ShownLine[]; readonly counts: LevelCounts } {
  const counts = { error: 0, warn: 0, info: 0 };
  const text = search.toLowerCase();
  const { fromMs = Number.NEGATIVE_INFINITY, toMs = Number.POSITIVE_INFINITY } = range;
  const lines = all.filter((line) => {
    const isLike =
      line.timeMs >= fromMs &&
      line.timeMs < toMs &&
      (task === "" || line.sent.taskId === task) &&
      (text === "" || line.text.toLowerCase().includes(text));
    if (isLike) {
      counts[line.level] += 1;
    }
    return isLike && (levels.length === 0 || levels.includes(line.level));
  });
  return { lines, counts };
}

export interface Bar extends TimeBounds {
  readonly counts: LevelCounts;
}

/** Lengths that a bar may stand for, in seconds. */
const STEPS_S = [
  1, 2, 5, 10, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200, 86_400,
  172_800, 604_800,
];

/** How many lines there were over a range, in at most `maxBars` bars of one length. */
export function barsOf(
  lines: readonly ShownLine[],
  { fromMs, toMs }: TimeBounds,
  maxBars: number,
): readonly Bar[] {
  const stepS =
    STEPS_S.find((step) => (toMs - fromMs) / (step * 1_000) <= maxBars - 1) ??
    Math.ceil((toMs - fromMs) / 1_000 / (maxBars - 1));
  const stepMs = stepS * 1_000;
  const beginMs = Math.floor(fromMs / stepMs) * stepMs;
  const bars = Array.from({ length: Math.ceil((toMs - beginMs) / stepMs) || 1 }, (_, index) => ({
    fromMs: beginMs + index * stepMs,
    toMs: beginMs + (index + 1) * stepMs,
    counts: { error: 0, warn: 0, info: 0 },
  }));
  for (const { timeMs, level } of lines) {
    const bar = bars[Math.floor((timeMs - beginMs) / stepMs)];
    if (bar !== undefined) {
      bar.counts[level] += 1;
    }
  }
  return bars;
}

/**
 * A text on one line: its first, or the first that has what was searched for. `more` says how much
 * of the text is not there.
 */
export function folded(
  text: string,
  search: string,
): { readonly text: string; readonly more: string } {
  const begin = Math.max(text.search(/\S/), 0);
  const found = search === "" ? -1 : text.toLowerCase().indexOf(search.toLowerCase());
  const at = Math.max(found, begin);
  const lineBegin = Math.max(text.lastIndexOf("\n", at) + 1, begin);
  const isFar = at - lineBegin > MAX_FOLDED_CHARACTERS / 2;
  const from = isFar ? at - BEFORE_MARK_CHARACTERS : lineBegin;
  const [shown = ""] = text.slice(from, from + MAX_FOLDED_CHARACTERS).split("\n", 1);
  const isWhole = shown.trim() === text.trim();
  const others = text.trim().split("\n").length - 1;
  return {
    text: from > begin ? `…${shown}` : shown,
    more: isWhole ? "" : others > 0 ? `+${counted(others, "line")}` : `${text.length} characters`,
  };
}

/** Where a text has another, whatever the case of its letters; the first few. */
export function placesOf(text: string, search: string): readonly number[] {
  const [whole, wanted] = [text.toLowerCase(), search.toLowerCase()];
  const places: number[] = [];
  // A letter may be longer in lower case, and then the places are not those of the text.
  if (wanted === "" || whole.length !== text.length) {
    return places;
  }
  for (let at = whole.indexOf(wanted); at !== -1 && places.length < MAX_MARKS; ) {
    places.push(at);
    at = whole.indexOf(wanted, at + wanted.length);
  }
  return places;
}

/** Lines as a file of text: what a person reads, and what programs of the shell search. */
export const textOf = (lines: readonly ShownLine[]): string =>
  lines
    .map(({ sent: { time, worker, taskId }, level, text }) =>
      [time, level, worker || "node", ...(taskId ? [taskId] : []), text].join(" ").concat("\n"),
    )
    .join("");

/** Lines as JSON, one object a line, with all fields of the API (https://jsonlines.org). */
export const jsonLinesOf = (lines: readonly ShownLine[]): string =>
  lines.map(({ sent }) => `${JSON.stringify(sent)}\n`).join("");
