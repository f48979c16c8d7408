/** A table of things; on a narrow screen each row becomes a block in which every value has its name. */
import type { ReactNode } from "react";
import "./data-table.css";

export interface Column<Item> {
  readonly name: string;
  /** What the row has there. The first column's cell is the row's heading. */
  cell(item: Item): ReactNode;
  /** Its values are numbers, which stand below each other from their end. */
  readonly isNumber?: boolean;
}

interface DataTableProps<Item> {
  /** Names the table for screen readers. */
  readonly label: string;
  readonly columns: readonly Column<Item>[];
  readonly items: readonly Item[];
  /** Tells a row from the others. */
  keyOf(item: Item): string;
  /** The last cell: buttons or a menu. */
  readonly actions?: ((item: Item) => ReactNode) | undefined;
}

export function DataTable<Item>({ label, columns, items, keyOf, actions }: DataTableProps<Item>) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section className="table-box data-table" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map(({ name, isNumber }) => (
              <th key={name} scope="col" className={isNumber ? "number" : undefined}>
                {name}
              </th>
            ))}
            {actions && (
              <th scope="col">
                <span className="hidden">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={keyOf(item)} data-row tabIndex={-1}>
              {columns.map(({ name, cell, isNumber }, index) =>
                index === 0 ? (
                  <th key={name} scope="row">
                    {cell(item)}
                  </th>
                ) : (
                  <td key={name} data-column={name} className={isNumber ? "number" : undefined}>
                    <div>{cell(item)}</div>
                  </td>
                ),
              )}
              {actions && <td className="actions">{actions(item)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
