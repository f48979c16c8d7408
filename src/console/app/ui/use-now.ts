/** The time now, which a component follows while something goes on. */
import { useEffect, useState } from "react";

/** `everyMs` undefined: nothing goes on. */
export function useNow(everyMs: number | undefined): number {
  const [nowMs, setNowMs] = useState(() => Date.now());
  useEffect(() => {
    if (everyMs !== undefined) {
      const timer = setInterval(() => setNowMs(Date.now()), everyMs);
      return () => clearInterval(timer);
    }
  }, [everyMs]);
  return nowMs;
}
