/**
 * Type-ahead: keys that are pressed while a dialog is being loaded go to it once it is open. They
 * would be lost otherwise, or be shortcuts of the page behind it.
 */
import { useEffect } from "react";

/** Keys that are kept while a dialog is being loaded. */
const MAX_KEPT_KEYS = 1_000;

/** Keys that are kept, besides those that write a character. */
const NAMED = ["Backspace", "Enter", "Escape", "ArrowDown", "ArrowUp"];

let kept: string[] = [];

/** Keeps the keys for as long as it is shown: the fallback of a dialog that comes when it is opened. */
export function TypedAhead() {
  useEffect(() => {
    const keys: string[] = [];
    kept = keys;
    const keep = (event: KeyboardEvent): void => {
      if (isTyped(event) && keys.length < MAX_KEPT_KEYS) {
        event.preventDefault();
        event.stopImmediatePropagation();
        keys.push(event.key);
      }
    };
    addEventListener("keydown", keep, { capture: true });
    return () => {
      removeEventListener("keydown", keep, { capture: true });
      // The dialog takes them before that. Where none came, no later one gets them.
      setTimeout(() => {
        kept = kept === keys ? [] : kept;
      });
    };
  }, []);
  return null;
}

/** On some keyboards Ctrl and Alt together write characters. */
function isTyped(event: KeyboardEvent): boolean {
  const { key, metaKey, ctrlKey, altKey } = event;
  const isChord = (metaKey || ctrlKey || altKey) && !event.getModifierState("AltGraph");
  return !isChord && ([...key].length === 1 || NAMED.includes(key));
}

/** Presses the keys that were kept in a dialog that has just been opened. */
export function typeKept(dialog: HTMLDialogElement): void {
  const keys = kept;
  kept = [];
  for (const key of keys) {
    const field = document.activeElement;
    if (!dialog.open || field === null || !dialog.contains(field)) {
      return;
    }
    const press = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true });
    if (field.dispatchEvent(press)) {
      act(key, field, dialog);
    }
  }
}

/** What a browser does for a key that nothing else took. */
function act(key: string, field: Element, dialog: HTMLDialogElement): void {
  switch (key) {
    case "Escape":
      dialog.dispatchEvent(new Event("cancel", { cancelable: true }));
      break;
    case "Enter":
      if (field instanceof HTMLInputElement) {
        field.form?.requestSubmit();
      }
      break;
    case "Backspace":
      document.execCommand("delete");
      break;
    default:
      if ([...key].length === 1) {
        // The one way to write that fields of all types, their events and undoing know.
        document.execCommand("insertText", false, key);
      }
  }
}
