/** A text that somebody types, which goes into the address once nothing is typed for a moment. */
import { useEffect, useRef, useState } from "react";

/** How long nothing is typed until the text goes into the address. */
const TYPED_MS = 300;

/** The text, and what changes it. Another text that the address has, such as that of a link, takes its place. */
export function useTyped(value: string, onRest: (text: string) => void) {
  const [typed, setTyped] = useState(value);
  const known = useRef(value);
  const latest = useRef(onRest);
  latest.current = onRest;
  useEffect(() => {
    if (value !== known.current) {
      known.current = value;
      setTyped(value);
    }
  }, [value]);
  useEffect(() => {
    if (typed !== known.current) {
      const timer = setTimeout(() => {
        known.current = typed;
        latest.current(typed);
      }, TYPED_MS);
      return () => clearTimeout(timer);
    }
  }, [typed]);
  return [typed, setTyped] as const;
}
