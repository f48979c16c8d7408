/**
 * A table whose rows have more to show: they open in their place, by a click or their button, and the
 * address names the one that is open.
 */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type MouseEvent, type ReactNode, useId, useLayoutEffect, useRef } from "react";
import { DataTable, type DataTableProps } from "./data-table.tsx";
import { isForRow } from "./is-for-row.ts";
import "./openable-table.css";

interface OpenableTableProps<Item> extends Omit<DataTableProps<Item>, "openableOf"> {
  /** What is shown below a row that is opened. */
  detailsOf(item: Item): ReactNode;
  /** The key of the row that is open until the address says otherwise. Default: none is. */
  readonly openAtFirst?: string | undefined;
  /** What else the address says of the open row, by name: it goes when another one is opened. */
  readonly ofOpenRow?: readonly string[];
}

export function OpenableTable<Item>(props: OpenableTableProps<Item>) {
  const { detailsOf, openAtFirst, ofOpenRow = [], ...table } = props;
  const navigate = useNavigate();
  const asked = useSearch({ strict: false, select: (search) => search.open });
  const open = asked ?? openAtFirst;
  /** That all rows are closed is said where one is open by itself. */
  const none = openAtFirst === undefined ? undefined : "";
  const openableOf = (item: Item) => {
    const key = table.keyOf(item);
    const isOpen = key === open;
    const toggle = (): void =>
      void navigate({
        to: ".",
        search: (before: object) => ({
          ...before,
          ...Object.fromEntries(ofOpenRow.map((name) => [name, undefined])),
          open: isOpen ? none : key,
        }),
        replace: true,
        resetScroll: false,
      });
    return {
      isOpen,
      onClick: (event: MouseEvent): void => {
        if (isForRow(event)) {
          toggle();
        }
      },
      heading: (content: ReactNode) => (
        <Heading isOpen={isOpen} onToggle={toggle}>
          {content}
        </Heading>
      ),
      below: (cells: number) => (
        <Details cells={cells} isAsked={asked !== undefined}>
          {detailsOf(item)}
        </Details>
      ),
    };
  };
  return <DataTable {...table} openableOf={openableOf} />;
}

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
  /** Somebody opened the row, or a link did. */
  readonly isAsked: boolean;
  readonly children: ReactNode;
}

/** What a row shows below it; where it was asked for, it comes into view as far as there is room. */
function Details({ cells, isAsked, children }: DetailsProps) {
  const row = useRef<HTMLTableRowElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when the row opens
  useLayoutEffect(() => {
    if (isAsked) {
      row.current?.scrollIntoView({ block: "nearest" });
    }
  }, []);
  return (
    <tr className="row-details" ref={row}>
      <td colSpan={cells}>
        <div>{children}</div>
      </td>
    </tr>
  );
}
