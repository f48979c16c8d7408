/** Links in one row: a narrow screen cuts it, fades where it is cut, and has the current one in view. */
import { type ReactNode, useLayoutEffect, useRef } from "react";
import "./strip.css";

interface StripProps {
  readonly label: string;
  readonly className: string;
  /** What is current: another one is brought into view. */
  readonly current: string;
  readonly children: ReactNode;
}

export function Strip({ label, className, current, children }: StripProps) {
  const box = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const strip = box.current;
    const link = strip?.querySelector<HTMLElement>("[aria-current]");
    if (strip && link && current !== "") {
      strip.scrollLeft = link.offsetLeft - (strip.clientWidth - link.offsetWidth) / 2;
    }
  }, [current]);
  return (
    <nav className={`strip ${className}`} aria-label={label} ref={box}>
      {children}
    </nav>
  );
}
