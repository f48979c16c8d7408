/**
 * Tables that fit the terminal. Where one is too wide, long texts are cut first, then the columns
 * that matter least are dropped, then whatever is widest is cut. A program that reads a table
 * through a pipe gets all of it.
 */
import { plain } from "./plain.ts";

interface TableOptions {
  /** What is said instead of a table without rows, such as `No tasks`. */
  readonly empty: string;
  /** Titles of columns that a narrow terminal does without, the first of them first. */
  readonly drop?: readonly string[];
}

const GAP = "  ";
/** Cells that a long text keeps while there are columns to drop. */
const LONG_TEXT_CELLS = 24;
/** Cells that a text keeps at least. */
const SHORTEST_CELLS = 6;
/** Titles of what is of no use when it is cut; nor is the first column, which names the row. */
const WHOLE: ReadonlySet<string> = new Set(["ID", "URL"]);

export class Table {
  readonly #titles: readonly string[];
  readonly #rows: readonly (readonly string[])[];
  readonly #options: TableOptions;

  constructor(
    titles: readonly string[],
    rows: readonly (readonly string[])[],
    options: TableOptions,
  ) {
    this.#titles = titles;
    // In a column without a title, which is for notes, an empty cell stays empty.
    this.#rows = rows.map((row) =>
      row.map((cell, column) => plain(cell).trim() || (titles[column] === "" ? "" : "-")),
    );
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#rows.length === 0;
  }

  get empty(): string {
    return this.#options.empty;
  }

  /** Columns two spaces apart, without borders, as wide as they are or as `cells` allow. */
  text(cells = Number.POSITIVE_INFINITY): string {
    const lines = [this.#titles, ...this.#rows];
    let columns = this.#titles.map((title, index) => ({
      title,
      index,
      width: Math.max(...lines.map((line) => width(line[index] ?? ""))),
      isWhole: index === 0 || WHOLE.has(title),
    }));
    const drop = [...(this.#options.drop ?? [])];
    for (;;) {
      const fitting = cut(columns, cells, drop.length > 0 ? LONG_TEXT_CELLS : SHORTEST_CELLS);
      if (drop.length === 0 || total(fitting) <= cells) {
        columns = fitting;
        break;
      }
      const title = drop.shift();
      columns = columns.filter((column) => column.title !== title);
    }
    return lines
      .map((line) =>
        columns
          .map(({ index, width }) => fitted(line[index] ?? "", width))
          .join(GAP)
          .trimEnd(),
      )
      .join("\n");
  }
}

export function table(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  options: TableOptions,
): Table {
  return new Table(titles, rows, options);
}

interface Column {
  readonly title: string;
  readonly index: number;
  readonly width: number;
  readonly isWhole: boolean;
}

function total(columns: readonly Column[]): number {
  return columns.reduce((sum, { width }) => sum + width, GAP.length * (columns.length - 1));
}

/** Takes from the widest column until all of them fit, or none is wider than `least`. */
function cut(columns: readonly Column[], cells: number, least: number): Column[] {
  const widths = columns.map(({ width }) => width);
  let excess = total(columns) - cells;
  while (excess > 0) {
    const able = columns.flatMap(({ isWhole }, at) =>
      !isWhole && (widths[at] ?? 0) > least ? [at] : [],
    );
    if (able.length === 0) {
      break;
    }
    const widest = able.reduce((best, at) => ((widths[at] ?? 0) > (widths[best] ?? 0) ? at : best));
    widths[widest] = (widths[widest] ?? 0) - 1;
    excess -= 1;
  }
  return columns.map((column, at) => ({ ...column, width: widths[at] ?? 0 }));
}

/** Pads the text to `cells` cells, or cuts it to them with `…` at the end. */
function fitted(text: string, cells: number): string {
  const own = width(text);
  if (own <= cells) {
    return text + " ".repeat(cells - own);
  }
  let kept = "";
  let used = 0;
  for (const { segment } of graphemes.segment(text)) {
    const next = cellsOf(segment);
    if (used + next > cells - 1) {
      break;
    }
    kept += segment;
    used += next;
  }
  return `${kept}…${" ".repeat(cells - 1 - used)}`;
}

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });
/** Characters that terminals show in two cells: East Asian wide characters (UAX #11) and emoji. */
const WIDE =
  /^[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;

function cellsOf(segment: string): number {
  return WIDE.test(segment) ? 2 : 1;
}

function width(text: string): number {
  let cells = 0;
  for (const { segment } of graphemes.segment(text)) {
    cells += cellsOf(segment);
  }
  return cells;
}
