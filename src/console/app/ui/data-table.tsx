/** A table of things; on a narrow screen each row is a name with its state, and a line or two of facts. */
import type { MouseEvent, ReactNode } from "react";
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

/** What a row shows that opens in its place (`openable-table.tsx`). */
export interface OpenableRow {
  readonly isOpen: boolean;
  onClick(event: MouseEvent): void;
  /** Its heading, with the button that opens it. */
  heading(content: ReactNode): ReactNode;
  /** The row of details below it while it is open; it spans this number of cells. */
  below(cells: number): ReactNode;
}

export interface DataTableProps<Item> {
  /** Names the table for screen readers. */
  readonly label: string;
  readonly columns: readonly Column<Item>[];
  readonly items: readonly Item[];
  /** Tells a row from the others. */
  keyOf(item: Item): string;
  /** Its cells stand at the beginning of their rows, some of which are high. Default: in the middle. */
  readonly isTop?: boolean;
  /** Default: rows do not open. */
  readonly openableOf?: (item: Item) => OpenableRow;
  /** The last cell: buttons or a menu. */
  readonly actions?: ((item: Item) => ReactNode) | undefined;
}

/** The classes of a column's cells. */
const classOf = <Item,>({ name, isNumber, grows, narrow }: Column<Item>): string | undefined =>
  [isNumber && "number", grows && "grows", name === "State" ? "beside" : narrow]
    .filter(Boolean)
    .join(" ") || undefined;

export function DataTable<Item>(props: DataTableProps<Item>) {
  const { label, columns, items, keyOf, isTop = false, openableOf, actions } = props;
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
          {items.map((item) => (
            <Row
              key={keyOf(item)}
              item={item}
              columns={columns}
              actions={actions}
              openable={openableOf?.(item)}
            />
          ))}
        </tbody>
      </table>
    </section>
  );
}

interface RowProps<Item> extends Pick<DataTableProps<Item>, "columns" | "actions"> {
  readonly item: Item;
  readonly openable: OpenableRow | undefined;
}

function Row<Item>({ item, columns, actions, openable }: RowProps<Item>) {
  return (
    <>
      <tr
        data-row
        data-opens={openable?.isOpen}
        tabIndex={-1}
        {...(openable && { onClick: openable.onClick })}
      >
        {columns.map((column, index) =>
          index === 0 ? (
            <th key={column.name} scope="row" className={classOf(column)}>
              {openable?.heading(column.cell(item)) ?? <div>{column.cell(item)}</div>}
            </th>
          ) : (
            <td key={column.name} data-column={column.name} className={classOf(column)}>
              <div>{column.cell(item)}</div>
            </td>
          ),
        )}
        {actions && <td className="actions">{actions(item)}</td>}
      </tr>
      {/* The last cell has the actions, or what a very wide screen leaves behind the others. */}
      {openable?.isOpen && openable.below(columns.length + 1)}
    </>
  );
}
