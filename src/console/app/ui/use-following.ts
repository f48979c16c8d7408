/** Keeps the end of a list in view while it is in view. */
import { useLayoutEffect, useRef } from "react";

/** Nearer to the end than this, the view follows new lines. */
const MAX_FOLLOW_PX = 40;

/** Returns the ref of the element that scrolls. `count`: how many lines there are. */
export function useFollowing(count: number) {
  const box = useRef<HTMLElement>(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    const element = box.current;
    if (element && isAtEnd.current && count > 0) {
      element.scrollTop = element.scrollHeight;
    }
  }, [count]);
  useLayoutEffect(() => {
    const element = box.current;
    const onScroll = (): void => {
      if (element) {
        const { scrollHeight, scrollTop, clientHeight } = element;
        isAtEnd.current = scrollHeight - scrollTop - clientHeight < MAX_FOLLOW_PX;
      }
    };
    element?.addEventListener("scroll", onScroll, { passive: true });
    return () => element?.removeEventListener("scroll", onScroll);
  }, []);
  return box;
}
