/**
 * A table whose rows have more to show: they open in their place, by a click or their button, and the
 * address names the one that is open.
 */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type MouseEvent, type ReactNode, useId, useLayoutEffect, useRef } from "react";
import { DataTable, type DataTableProps } from "./data-table.tsx";
import "./openable-table.css";

interface OpenableTableProps<Item> extends Omit<DataTableProps<Item>, "openableOf"> {
  /** What is shown below a row that is opened. */
  detailsOf(item: Item): ReactNode;
}

export function OpenableTable<Item>({ detailsOf, ...table }: OpenableTableProps<Item>) {
  const navigate = useNavigate();
  const open = useSearch({ strict: false, select: (search) => search.open });
  const openableOf = (item: Item) => {
    const key = table.keyOf(item);
    const isOpen = key === open;
    const toggle = (): void =>
      void navigate({
        to: ".",
        search: (before: object) => ({ ...before, open: isOpen ? undefined : key }),
        replace: true,
        resetScroll: false,
      });
    return {
      isOpen,
      onClick: ({ target }: MouseEvent): void => {
        // Who has drawn over a text wants to copy it.
        if (!isOther(target) && getSelection()?.isCollapsed !== false) {
          toggle();
        }
      },
      heading: (content: ReactNode) => (
        <Heading isOpen={isOpen} onToggle={toggle}>
          {content}
        </Heading>
      ),
      below: (cells: number) => <Details cells={cells}>{detailsOf(item)}</Details>,
    };
  };
  return <DataTable {...table} openableOf={openableOf} />;
}

/** Whether a click in a row is for something in it, or for a dialog or a menu that it has opened. */
const isOther = (target: EventTarget): boolean =>
  target instanceof Element && target.closest("a, button, select, dialog, [popover]") !== null;

interface HeadingProps {
  readonly isOpen: boolean;
  onToggle(): void;
  readonly children: ReactNode;
}

function Heading({ isOpen, onToggle, children }: HeadingProps) {
  const id = useId();
  return (
    <div className="opens">
      <button
        type="button"
        className="row-open"
        aria-expanded={isOpen}
        aria-labelledby={id}
        onClick={onToggle}
      />
      <div id={id}>{children}</div>
    </div>
  );
}

interface DetailsProps {
  readonly cells: number;
  readonly children: ReactNode;
}

/** What a row shows below it; it comes into view as far as there is room. */
function Details({ cells, children }: DetailsProps) {
  const row = useRef<HTMLTableRowElement>(null);
  useLayoutEffect(() => {
    row.current?.scrollIntoView({ block: "nearest" });
  }, []);
  return (
    <tr className="row-details" ref={row}>
      <td colSpan={cells}>
        <div>{children}</div>
      </td>
    </tr>
  );
}
