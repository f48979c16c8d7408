/** A list that is too long to be taken in at a glance: a field finds items by name, and a button shows all. */
import { type ReactNode, useState } from "react";
import { Button } from "./button.tsx";
import { Field } from "./field.tsx";

/** Items that are seen at a glance, without a search. */
const MAX_WITHOUT_SEARCH = 12;

interface FinderOptions<Item> {
  /** What the items are, such as `endpoints`. */
  readonly noun: string;
  /** How many are shown until all are asked for. Default: all. */
  readonly maxShown?: number;
  nameOf(item: Item): string | undefined;
}

interface Finder<Item> {
  /** The items whose names have what is written, as many as are shown. */
  readonly shown: readonly Item[];
  /** The field, and what is said where nothing is found; nothing where the list is short. */
  readonly field: ReactNode;
  /** The button that shows the rest; nothing where all is shown. */
  readonly rest: ReactNode;
}

export function useFinder<Item>(
  items: readonly Item[],
  { noun, maxShown = Number.POSITIVE_INFINITY, nameOf }: FinderOptions<Item>,
): Finder<Item> {
  const [text, setText] = useState("");
  const [isWhole, setWhole] = useState(false);
  const wanted = text.trim().toLowerCase();
  const isLong = items.length > MAX_WITHOUT_SEARCH;
  const found = isLong
    ? items.filter((item) => nameOf(item)?.toLowerCase().includes(wanted))
    : items;
  const field = isLong && (
    <div className="finder">
      <Field label={`Find one of ${items.length} ${noun}`}>
        {(control) => (
          <input
            {...control}
            type="search"
            value={text}
            onChange={({ target }) => setText(target.value)}
            // The list narrows while somebody writes: the form that it is in is not sent.
            onKeyDown={(event) => event.key === "Enter" && event.preventDefault()}
          />
        )}
      </Field>
      {found.length === 0 && <p className="secondary">None of them has this name.</p>}
    </div>
  );
  const shown = isWhole ? found : found.slice(0, maxShown);
  const rest = shown.length < found.length && (
    <p>
      <Button onClick={() => setWhole(true)}>Show all {found.length}</Button>
    </p>
  );
  return { shown, field, rest };
}
