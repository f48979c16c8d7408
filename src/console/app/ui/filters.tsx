/**
 * A filter bar: what a list is narrowed by. On a narrow screen one button opens the fields, and what
 * was chosen in them is there as chips.
 */
import { type ReactNode, type RefObject, useId, useRef, useState } from "react";
import { Button } from "./button.tsx";
import "./filters.css";

/** A filter that is set. */
export interface ChosenFilter {
  /** Such as `Last hour`. */
  readonly text: string;
  /** Its chip stands on a wide screen as well, because no field shows it. Default: one does. */
  readonly hasNoField?: boolean;
  clear(): void;
}

/** A filter that is set, if it has a text, and is seen in its field. */
export const chosenFilter = (text: string | undefined, clear: () => void): ChosenFilter[] =>
  text ? [{ text, clear }] : [];

/** The same of one that has no field, because links set it. */
export const chosenByLink = (text: string | undefined, clear: () => void): ChosenFilter[] =>
  text ? [{ text, clear, hasNoField: true }] : [];

interface FiltersProps {
  /** What stands before the button, such as the search. */
  readonly first: ReactNode;
  /** The filters that are set behind the button. */
  readonly chosen: readonly ChosenFilter[];
  /** What the button says. Default: `Filters`, with how many are set. */
  readonly label?: ReactNode;
  readonly className?: string;
  /** Its element, for who leads the focus there. */
  readonly box?: RefObject<HTMLElement | null>;
  /** What can be done with all that is chosen, at the end of the row. */
  readonly actions?: ReactNode;
  /** The fields. */
  readonly children: ReactNode;
}

export function Filters(props: FiltersProps) {
  const { first, chosen, label, className, actions, children } = props;
  const own = useRef<HTMLElement>(null);
  const box = props.box ?? own;
  const fields = useId();
  const [isOpen, setOpen] = useState(false);
  const clear = (one: ChosenFilter): void => {
    // The chip goes, and the focus with it.
    const button = box.current?.querySelector<HTMLElement>(".filters-open");
    (button?.checkVisibility() ? button : box.current?.querySelector("input"))?.focus();
    one.clear();
  };
  return (
    <section
      ref={box}
      className={["filters folding", isOpen && "open", className].filter(Boolean).join(" ")}
      aria-label="Filter"
    >
      {first}
      <Button
        className="filters-open"
        aria-expanded={isOpen}
        aria-controls={fields}
        onClick={() => setOpen(!isOpen)}
      >
        {label ?? (chosen.length > 0 ? `Filters (${chosen.length})` : "Filters")}
      </Button>
      <div id={fields} className="filters-fields">
        {children}
      </div>
      {chosen.length > 0 && (
        <ul className="filters-chosen" aria-label="Chosen filters">
          {chosen.map((one) => (
            <li key={one.text} className={one.hasNoField ? undefined : "in-field"}>
              <Button className="filters-chip" title={one.text} onClick={() => clear(one)}>
                <bdi>{one.text}</bdi>
                <span className="hidden">(remove this filter)</span>
                <span aria-hidden="true">×</span>
              </Button>
            </li>
          ))}
        </ul>
      )}
      {actions}
    </section>
  );
}
