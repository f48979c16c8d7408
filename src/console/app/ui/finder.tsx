/** Finds items of a list by their names, where there are more than can be overlooked. */
import { type ReactNode, useState } from "react";
import { Field } from "./field.tsx";

/** Items that are overlooked without a search. */
const MAX_OVERLOOKED = 12;

interface Finder<Item> {
  /** The items whose names have what is written. */
  readonly found: readonly Item[];
  /** The field, and what is said where nothing is found; nothing where the list is short. */
  readonly field: ReactNode;
}

/** `noun` is what the items are, such as `endpoints`. */
export function useFinder<Item>(
  items: readonly Item[],
  noun: string,
  nameOf: (item: Item) => string | undefined,
): Finder<Item> {
  const [text, setText] = useState("");
  const wanted = text.trim().toLowerCase();
  const found = items.filter((item) => nameOf(item)?.toLowerCase().includes(wanted));
  const isLong = items.length > MAX_OVERLOOKED;
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
  return { found: isLong ? found : items, field };
}
