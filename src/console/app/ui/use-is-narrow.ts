/** Whether the screen is so narrow that the rows of tables are blocks, as the style sheets have it. */
import { useSyncExternalStore } from "react";

const narrow = matchMedia("(max-width: 40rem)");

function subscribe(onChange: () => void): () => void {
  narrow.addEventListener("change", onChange);
  return () => narrow.removeEventListener("change", onChange);
}

export const useIsNarrow = (): boolean => useSyncExternalStore(subscribe, () => narrow.matches);
