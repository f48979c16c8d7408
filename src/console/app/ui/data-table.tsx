/**
 * A table of things; on a narrow screen each row is a name with its state, and a line or two of facts.
 * Rows that have more to show open in their place, and the address names the one that is open.
 */
import { type MouseEvent, type ReactNode, useId, useLayoutEffect, useRef } from "react";
import { useOpenRow } from "./open-row.ts";
import "./data-table.css";

export interface Column<Item> {
  readonly name: string;
  /** What the row has there. The first column's cell is the row's heading. */
  cell(item: Item): ReactNode;
  /** Its values are numbers, which stand below each other from their end. */
  readonly isNumber?: boolean;
  /** It takes the room that the others leave. Default: all have some of it. */
  readonly grows?: boolean;
  /**
   * On a narrow screen: beside the name of the row, without its name, or not at all. Default: what
   * is called `State` is beside it, and all else is below it with its name.
   */
  readonly narrow?: "beside" | "unnamed" | "left-out";
}

interface DataTableProps<Item> {
  /** Names the table for screen readers. */
  readonly label: string;
  readonly columns: readonly Column<Item>[];
  readonly items: readonly Item[];
  /** Tells a row from the others. */
  keyOf(item: Item): string;
  /** Its cells stand at the beginning of their rows, some of which are high. Default: in the middle. */
  readonly isTop?: boolean;
  /** What is shown below a row that is opened. Default: rows do not open. */
  readonly detailsOf?: (item: Item) => ReactNode;
  /** The last cell: buttons or a menu. */
  readonly actions?: ((item: Item) => ReactNode) | undefined;
}

/** The classes of a column's cells. */
const classOf = <Item,>({ name, isNumber, grows, narrow }: Column<Item>): string | undefined =>
  [isNumber && "number", grows && "grows", name === "State" ? "beside" : narrow]
    .filter(Boolean)
    .join(" ") || undefined;

export function DataTable<Item>(props: DataTableProps<Item>) {
  const { label, columns, items, keyOf, isTop = false, detailsOf, actions } = props;
  const [open, toggle] = useOpenRow();
  const grows = columns.some((column) => column.grows);
  const classes = ["table-box data-table", grows && "growing", isTop && "top"]
    .filter(Boolean)
    .join(" ");
  return (
    <section
      className={classes}
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
      tabIndex={0}
    >
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" className={classOf(column)}>
                {column.name}
              </th>
            ))}
            {actions && (
              <th scope="col" className="actions">
                <span className="hidden">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {items.map((item) => {
            const key = keyOf(item);
            return (
              <Row
                key={key}
                item={item}
                columns={columns}
                actions={actions}
                {...(detailsOf && {
                  details: key === open ? detailsOf(item) : undefined,
                  onToggle: () => toggle(key),
                })}
              />
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

interface RowProps<Item> extends Pick<DataTableProps<Item>, "columns" | "actions"> {
  readonly item: Item;
  /** What is below it while it is open. */
  readonly details?: ReactNode;
  /** Opens or closes it. Default: it does not open. */
  readonly onToggle?: () => void;
}

function Row<Item>({ item, columns, actions, details, onToggle }: RowProps<Item>) {
  const id = useId();
  const isOpen = details !== undefined;
  const onClick = ({ target }: MouseEvent): void => {
    // Who has drawn over a text wants to copy it.
    if (!isOther(target) && getSelection()?.isCollapsed !== false) {
      onToggle?.();
    }
  };
  return (
    <>
      <tr data-row data-opens={onToggle && isOpen} tabIndex={-1} {...(onToggle && { onClick })}>
        {columns.map((column, index) =>
          index === 0 ? (
            <th key={column.name} scope="row" className={classOf(column)}>
              {onToggle === undefined ? (
                <div>{column.cell(item)}</div>
              ) : (
                <div className="opens">
                  <button
                    type="button"
                    className="row-open"
                    aria-expanded={isOpen}
                    aria-labelledby={id}
                    onClick={onToggle}
                  />
                  <div id={id}>{column.cell(item)}</div>
                </div>
              )}
            </th>
          ) : (
            <td key={column.name} data-column={column.name} className={classOf(column)}>
              <div>{column.cell(item)}</div>
            </td>
          ),
        )}
        {actions && <td className="actions">{actions(item)}</td>}
      </tr>
      {isOpen && <Details columns={columns.length + (actions ? 1 : 0)}>{details}</Details>}
    </>
  );
}

/** Whether a click in a row is for something in it, or for a dialog or a menu that it has opened. */
const isOther = (target: EventTarget): boolean =>
  target instanceof Element && target.closest("a, button, select, dialog, [popover]") !== null;

interface DetailsProps {
  readonly columns: number;
  readonly children: ReactNode;
}

/** What a row shows below it; it comes into view as far as there is room. */
function Details({ columns, children }: DetailsProps) {
  const row = useRef<HTMLTableRowElement>(null);
  useLayoutEffect(() => {
    row.current?.scrollIntoView({ block: "nearest" });
  }, []);
  return (
    <tr className="row-details" ref={row}>
      {/* One more is what a very wide screen leaves behind the last. */}
      <td colSpan={columns + 1}>
        <div>{children}</div>
      </td>
    </tr>
  );
}
