/**
 * The keys of all tables: `j` and `k` go from row to row, Enter opens what the row is about, `x`
 * selects it where rows can be selected, Escape leaves the table. A row takes part by `data-row`
 * and a `tabIndex` of -1; what it opens is its first link, or else its first button.
 */
import { useEffect } from "react";
import { useShortcut } from "./keys.ts";

const ROW = "tr[data-row]";

const rowInFocus = (): HTMLElement | undefined =>
  document.activeElement?.closest<HTMLElement>(ROW) ?? undefined;

/** Goes some rows on, from the first or the last one where none has the focus. */
function step(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>(`main ${ROW}`)];
  const row = rowInFocus();
  const next = row === undefined ? rows.find(isInView) : rows[rows.indexOf(row) + by];
  if (next !== undefined) {
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  }
}

const isInView = (row: HTMLElement): boolean => row.getBoundingClientRect().top >= 0;

/** Enter and Escape have other meanings elsewhere: they are for the row that has the focus itself. */
function onKeyDown({ key, target }: KeyboardEvent): void {
  if (!(target instanceof HTMLElement && target.matches(ROW))) {
    return;
  }
  if (key === "Enter") {
    target.querySelector<HTMLElement>("th :is(a, button), :is(a, button)")?.click();
  } else if (key === "Escape") {
    target.blur();
  }
}

/** Handles the keys of all tables of the page. */
export function useRowKeys(): void {
  useShortcut("j", () => step(1));
  useShortcut("k", () => step(-1));
  useShortcut("x", () =>
    rowInFocus()?.querySelector<HTMLElement>('input[type="checkbox"]')?.click(),
  );
  useEffect(() => {
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
}
