/**
 * JSON as the rows of a tree: those of what is open, each list and object in parts, so that the
 * page has few rows however large the value is.
 */
import { isExactNumber } from "../../../../collections/exact-json.ts";
import { counted } from "../../ui/counted.ts";

/** Members of a list or an object that are shown at first, and with each further part. */
export const MAX_MEMBERS = 100;
/** At first a tree is opened as far as it has this many rows. */
const MAX_ROWS_AT_FIRST = 40;
/** Longer strings are shown in part until they are opened. */
export const MAX_CLOSED_CHARS = 200;

export interface JsonRow {
  /** Tells it from other rows: the names on the way to it, as a JSON Pointer (RFC 6901). */
  readonly path: string;
  /** The path of what it is in. */
  readonly parent: string | undefined;
  /** Its name in an object, or its number in a list; the root has none. */
  readonly name: string | undefined;
  readonly value: unknown;
  /** From 1; only a root that is shown itself has 0. */
  readonly level: number;
  /** Undefined for what cannot be opened. */
  readonly isOpen: boolean | undefined;
  /** Members that are not shown yet, which this row stands for. */
  readonly hidden?: number;
}

/** How many members are shown of what is open, by its path. */
type OpenPaths = ReadonlyMap<string, number>;

export const isContainer = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !isExactNumber(value);

/** Members that a closed object shows. */
const MAX_TOLD_MEMBERS = 5;

/** Characters that a closed object shows. */
const MAX_TOLD_CHARS = 60;

/** Characters of a text or a name in it. */
const MAX_TOLD_TEXT_CHARS = 24;

/** A closed list or object in a line: how many items there are, or the first members, as many as fit. */
export function toldClosed(value: object): string {
  if (Array.isArray(value)) {
    return value.length === 0 ? "[]" : counted(value.length, "item");
  }
  const names = Object.keys(value);
  const told: string[] = [];
  let left = MAX_TOLD_CHARS;
  for (const name of names.slice(0, MAX_TOLD_MEMBERS)) {
    const text = `${cut(name)}: ${toldIn((value as Record<string, unknown>)[name])}`;
    left -= text.length;
    if (left < 0 && told.length > 0) {
      break;
    }
    told.push(text);
  }
  const all = [...told, ...(names.length > told.length ? ["…"] : [])];
  return all.length === 0 ? "{}" : `{ ${all.join(", ")} }`;
}

function toldIn(value: unknown): string {
  if (isContainer(value)) {
    return Array.isArray(value) || sizeOfContainer(value) === 0 ? toldClosed(value) : "{…}";
  }
  return typeof value === "string" ? `"${cut(value)}"` : JSON.stringify(value);
}

const cut = (text: string): string =>
  text.length > MAX_TOLD_TEXT_CHARS ? `${text.slice(0, MAX_TOLD_TEXT_CHARS)}…` : text;

/** How many members a list or an object has. */
export const sizeOfContainer = (value: object): number =>
  Array.isArray(value) ? value.length : Object.keys(value).length;

const mayOpen = (value: unknown): boolean =>
  isContainer(value)
    ? sizeOfContainer(value) > 0
    : typeof value === "string" && value.length > MAX_CLOSED_CHARS;

/** The rows of a value. A list or an object has those of its members; anything else has one. */
export function rowsOf(root: unknown, open: OpenPaths): readonly JsonRow[] {
  const rows: JsonRow[] = [];
  const add = (
    value: unknown,
    path: string,
    place: Pick<JsonRow, "parent" | "level" | "name">,
  ): void => {
    const shown = open.get(path);
    rows.push({
      ...place,
      path,
      value,
      isOpen: mayOpen(value) ? shown !== undefined : undefined,
    });
    if (shown === undefined || !isContainer(value)) {
      return;
    }
    const level = place.level + 1;
    for (const [name, member] of membersOf(value, shown)) {
      const key = name.replaceAll("~", "~0").replaceAll("/", "~1");
      add(member, `${path}/${key}`, { parent: path, level, name });
    }
    const hidden = sizeOfContainer(value) - shown;
    if (hidden > 0) {
      const more = { path: `${path}~more`, value: undefined, name: undefined, isOpen: undefined };
      rows.push({ ...more, parent: path, level, hidden });
    }
  };
  add(root, "", { parent: undefined, level: 0, name: undefined });
  return isContainer(root) && open.has("") ? rows.slice(1) : rows;
}

/** The first members, with their names. */
function membersOf(value: object, count: number): readonly (readonly [string, unknown])[] {
  return Array.isArray(value)
    ? value.slice(0, count).map((member, index) => [String(index), member] as const)
    : Object.entries(value).slice(0, count);
}

/** What is open at first: the outer levels, as long as they are few rows. */
export function openAtFirst(root: unknown): OpenPaths {
  let open = new Map([["", MAX_MEMBERS]]);
  for (;;) {
    const closed = rowsOf(root, open).filter(
      ({ isOpen, value }) => isOpen === false && isContainer(value),
    );
    const opened = new Map(open);
    for (const { path } of closed) {
      opened.set(path, MAX_MEMBERS);
    }
    if (closed.length === 0 || rowsOf(root, opened).length > MAX_ROWS_AT_FIRST) {
      return open;
    }
    open = opened;
  }
}

/** A list of objects as a table. */
export interface JsonTable {
  /** The name of the list in the value; undefined where it is the value. */
  readonly name: string | undefined;
  readonly columns: readonly string[];
  readonly rows: readonly object[];
}

/** More columns are no table that anybody reads. */
const MAX_COLUMNS = 24;
/** Rows that are looked at for their columns. */
const MAX_ROWS_READ = 100;

/** The tables of a value: itself, or members of it that are lists of objects. */
export function tablesIn(root: unknown): readonly JsonTable[] {
  if (Array.isArray(root)) {
    return tableOf(undefined, root);
  }
  return isContainer(root)
    ? Object.entries(root).flatMap(([name, member]) => tableOf(name, member))
    : [];
}

function tableOf(name: string | undefined, value: unknown): readonly JsonTable[] {
  if (!Array.isArray(value) || value.length < 2) {
    return [];
  }
  const read = value.slice(0, MAX_ROWS_READ);
  if (!read.every((row) => isContainer(row) && !Array.isArray(row))) {
    return [];
  }
  const columns = [...new Set(read.flatMap((row) => Object.keys(row)))];
  return columns.length > 0 && columns.length <= MAX_COLUMNS
    ? [{ name, columns, rows: value }]
    : [];
}
