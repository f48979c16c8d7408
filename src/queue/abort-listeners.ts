/**
 * Tells who waits that its caller has gone. A signal stands for a connection
 * and so for one call after the other (`server/http/disconnect.ts`), and to come and
 * go as a listener of it costs more than all else that a wait does: each
 * signal gets one listener, which tells those that are there.
 */

import { SmallSet } from "../collections/small-set.ts";

/** Is told when the signal aborts. */
export interface AbortListener {
  onGone(): void;
}

const bySignal = new WeakMap<AbortSignal, SmallSet<AbortListener>>();

/** Those who are told when the signal aborts, to join and to leave. It must not have aborted yet. */
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
