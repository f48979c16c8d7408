/** The secret in the fragment of a link, which browsers send to no server. */
import { type ParsedLocation, redirect } from "@tanstack/react-router";

declare module "@tanstack/history" {
  interface HistoryState {
    /** The code of the link that was opened. */
    readonly code?: string;
  }
}

/**
 * Moves the code of a link out of the address: it stands in no list of visited pages, and no
 * screen shows it. It stays with this entry of the tab's history, for a reload. Returns the code,
 * or an empty text, for the context of the page.
 */
export function hideCode({ location }: { readonly location: ParsedLocation }): {
  readonly code: string;
} {
  const code = new URLSearchParams(location.hash).get("code");
  if (code !== null) {
    throw redirect({ to: location.pathname, hash: "", state: { code }, replace: true });
  }
  return { code: location.state.code ?? "" };
}
