/** JSON as a tree that folds, as tables where it has lists of objects, and as its text. */
import {
  type KeyboardEvent,
  type ReactNode,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { Button } from "../../ui/button.tsx";
import { counted } from "../../ui/counted.ts";
import { Segments } from "../../ui/segments.tsx";
import {
  isContainer,
  type JsonRow,
  type JsonTable,
  MAX_CLOSED_CHARS,
  MAX_MEMBERS,
  openAtFirst,
  rowsOf,
  sizeOfContainer,
  tablesIn,
  toldClosed,
} from "./json-rows.ts";
import "./json-view.css";

/** Of longer texts the page shows the beginning. */
export const MAX_SHOWN_CHARS = 100_000;

type View = "Tree" | "Table" | "Text";

interface JsonViewProps {
  readonly value: unknown;
  /** Its text, with line breaks. */
  readonly text: string;
  /** What it is, such as `Result`. */
  readonly label: string;
  /** What stands before them. */
  readonly head?: ReactNode;
  /** What can be done with it, beside the choice of a view. */
  readonly children: ReactNode;
}

export function JsonView({ value, text, label, head, children }: JsonViewProps) {
  const tables = useMemo(() => tablesIn(value), [value]);
  const [chosen, setChosen] = useState<View>();
  const first = tables[0] !== undefined && tables[0].name === undefined ? "Table" : "Tree";
  const view = isContainer(value) && sizeOfContainer(value) > 0 ? (chosen ?? first) : "Text";
  return (
    <>
      <div className="result-line">
        {head}
        <span className="content-tools">
          {(view !== "Text" || chosen === "Text") && (
            <Segments
              label={`Show ${label} as`}
              choices={tables.length > 0 ? ["Tree", "Table", "Text"] : ["Tree", "Text"]}
              value={view}
              onChange={(next: View) => setChosen(next)}
            />
          )}
          {children}
        </span>
      </div>
      {view === "Tree" && <Tree root={value} label={label} />}
      {view === "Table" &&
        tables.map((table) => <Table key={table.name ?? ""} table={table} label={label} />)}
      {view === "Text" && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
        <section className="result-text" tabIndex={0} aria-label={`Content of ${label}`}>
          {text.slice(0, MAX_SHOWN_CHARS)}
        </section>
      )}
      {view === "Text" && text.length > MAX_SHOWN_CHARS && (
        <p className="secondary">The page shows the beginning.</p>
      )}
    </>
  );
}

/** A tree as https://www.w3.org/WAI/ARIA/apg/patterns/treeview/ has it: one row takes the focus. */
function Tree({ root, label }: { readonly root: unknown; readonly label: string }) {
  const box = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState(() => openAtFirst(root));
  const rows = useMemo(() => rowsOf(root, open), [root, open]);
  const [current, setCurrent] = useState("");
  const isMoved = useRef(false);
  const index = Math.max(
    0,
    rows.findIndex(({ path }) => path === current),
  );
  useLayoutEffect(() => {
    if (isMoved.current) {
      isMoved.current = false;
      (box.current?.children[index] as HTMLElement | undefined)?.focus();
    }
  });
  const move = (to: JsonRow | undefined): void => {
    if (to !== undefined) {
      isMoved.current = true;
      setCurrent(to.path);
    }
  };
  const setShown = (path: string, count: number | undefined): void => {
    const next = new Map(open);
    if (count === undefined) {
      next.delete(path);
    } else {
      next.set(path, count);
    }
    setOpen(next);
  };
  const press = ({ path, parent = "", isOpen, hidden }: JsonRow): void => {
    if (hidden !== undefined) {
      const shown = open.get(parent) ?? 0;
      setShown(parent, shown + MAX_MEMBERS);
      isMoved.current = true;
      // The first of the members that come in its place.
      const first = rows.filter((row) => row.parent === parent).length - 1;
      const added = rowsOf(root, new Map([...open, [parent, shown + MAX_MEMBERS]])).filter(
        (row) => row.parent === parent,
      )[first];
      setCurrent(added?.path ?? parent);
    } else if (isOpen !== undefined) {
      setShown(path, isOpen ? undefined : MAX_MEMBERS);
    }
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const row = rows[index];
    if (row === undefined || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const actions: Readonly<Record<string, () => void>> = {
      ArrowDown: () => move(rows[index + 1]),
      ArrowUp: () => move(rows[index - 1]),
      Home: () => move(rows[0]),
      End: () => move(rows.at(-1)),
      ArrowRight: () => (row.isOpen === false ? press(row) : row.isOpen && move(rows[index + 1])),
      ArrowLeft: () =>
        row.isOpen ? press(row) : move(rows.find(({ path }) => path === row.parent)),
      Enter: () => press(row),
      " ": () => press(row),
    };
    const action = actions[event.key];
    if (action !== undefined) {
      event.preventDefault();
      action();
    }
  };
  return (
    <div
      className="tree result-text"
      role="tree"
      aria-label={`Content of ${label}`}
      ref={box}
      onKeyDown={onKeyDown}
    >
      {rows.map((row, at) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the tree takes the keys of its rows
        <div
          key={row.path}
          role="treeitem"
          className="tree-row"
          aria-level={row.level}
          aria-expanded={row.isOpen}
          aria-selected={at === index}
          tabIndex={at === index ? 0 : -1}
          style={{ paddingInlineStart: `${row.level}rem` }}
          onClick={() => {
            setCurrent(row.path);
            if (getSelection()?.isCollapsed !== false) {
              press(row);
            }
          }}
        >
          <Row row={row} />
        </div>
      ))}
    </div>
  );
}

function Row({ row: { name, value, isOpen, hidden } }: { readonly row: JsonRow }) {
  if (hidden !== undefined) {
    const more = Math.min(hidden, MAX_MEMBERS);
    return (
      <span className="tree-more">
        Show {more} more of {hidden.toLocaleString("en")}
      </span>
    );
  }
  return (
    <>
      {name !== undefined && <span className="json-name">{name}: </span>}
      <Value value={value} isOpen={isOpen === true} />
    </>
  );
}

function Value({ value, isOpen }: { readonly value: unknown; readonly isOpen: boolean }) {
  if (isContainer(value)) {
    const isOpenObject = isOpen && !Array.isArray(value);
    const summary = isOpenObject ? counted(sizeOfContainer(value), "field") : toldClosed(value);
    return <span className="secondary">{summary}</span>;
  }
  if (typeof value !== "string") {
    return <span className="json-literal">{JSON.stringify(value)}</span>;
  }
  const shown = cut(value, isOpen ? MAX_SHOWN_CHARS : MAX_CLOSED_CHARS);
  return (
    <>
      <span className="json-string">{JSON.stringify(shown)}</span>
      {shown.length < value.length && (
        <span className="secondary"> … {counted(value.length, "character")}</span>
      )}
    </>
  );
}

/** The beginning of a text, up to the end of a word where one is near. */
function cut(text: string, max: number): string {
  const space = text.length > max ? text.lastIndexOf(" ", max) : -1;
  return text.slice(0, space > max / 2 ? space : max);
}

function Table({ table, label }: { readonly table: JsonTable; readonly label: string }) {
  const { name, columns, rows } = table;
  const [shown, setShown] = useState(MAX_MEMBERS);
  const title = name === undefined ? label : `${name} of ${label}`;
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section className="table-box json-table" aria-label={`Table of ${title}`} tabIndex={0}>
        <table>
          {name !== undefined && <caption>{name}</caption>}
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column} scope="col">
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, shown).map((row, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the rows of a result never change
              <tr key={index}>
                {columns.map((column) => (
                  <td key={column}>{cellOf((row as Record<string, unknown>)[column])}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {rows.length > shown && (
        <p className="result-line">
          <Button onClick={() => setShown(shown + MAX_MEMBERS)}>
            Show {Math.min(MAX_MEMBERS, rows.length - shown)} more
          </Button>
          <span className="secondary">
            {shown.toLocaleString("en")} of {counted(rows.length, "row")}
          </span>
        </p>
      )}
    </>
  );
}

function cellOf(value: unknown): string {
  if (value === undefined || value === null) {
    return "";
  }
  if (isContainer(value)) {
    return toldClosed(value);
  }
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > MAX_CLOSED_CHARS ? `${text.slice(0, MAX_CLOSED_CHARS)}…` : text;
}
