/**
 * A fan-out of abort signals: one listener per signal tells every wait that its
 * caller has gone. A signal belongs to a connection and outlives many calls
 * (`server/http/disconnect.ts`). Adding and removing a listener on it for each
 * call would cost more than the rest of a wait.
 */

import { SmallSet } from "../collections/small-set.ts";

/** Gets a call when the signal aborts. */
export interface AbortListener {
  onGone(): void;
}

const bySignal = new WeakMap<AbortSignal, SmallSet<AbortListener>>();

/** The signal's listeners, to add oneself to and delete oneself from. It must not have aborted yet. */
export function abortListenersOf(signal: AbortSignal): SmallSet<AbortListener> {
  const known = bySignal.get(signal);
  if (known) {
    return known;
  }
  const listeners = new SmallSet<AbortListener>();
  bySignal.set(signal, listeners);
  signal.addEventListener("abort", () => listeners.each((listener) => listener.onGone()), {
    once: true,
  });
  return listeners;
}
