/** Keyboard shortcuts: single keys, sequences such as `g t`, and `mod+k` (Ctrl or Command). */
import { useEffect, useRef } from "react";

/** How long the second key of a sequence may take. */
const SEQUENCE_MS = 1_000;

/** Calls `run` when the shortcut is pressed outside of fields and dialogs. */
export function useShortcut(shortcut: string, run: () => void): void {
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => {
    const [first = "", second] = shortcut.split(" ");
    let startedAt = Number.NEGATIVE_INFINITY;
    const onKeyDown = (event: KeyboardEvent): void => {
      if (
        second !== undefined &&
        matches(event, second) &&
        event.timeStamp - startedAt < SEQUENCE_MS
      ) {
        startedAt = Number.NEGATIVE_INFINITY;
        event.preventDefault();
        latest.current();
      } else if (matches(event, first)) {
        if (second === undefined) {
          event.preventDefault();
          latest.current();
        } else {
          startedAt = event.timeStamp;
        }
      }
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, [shortcut]);
}

function matches(event: KeyboardEvent, key: string): boolean {
  const isMod = event.metaKey || event.ctrlKey;
  if (key.startsWith("mod+")) {
    return isMod && event.key.toLowerCase() === key.slice("mod+".length);
  }
  const isTyping =
    event.target instanceof Element &&
    event.target.closest("input, textarea, select, [contenteditable], dialog") !== null;
  return !isMod && !event.altKey && !isTyping && event.key === key;
}
