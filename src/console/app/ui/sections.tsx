/**
 * A long page with the list of its sections: beside them where there is room for both, else as a
 * menu above them. The section that is read is marked in it.
 */
import { useLocation } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef, useState } from "react";
import "./sections.css";

export interface PageSection {
  /** The id of its element, which an address names after its `#`. */
  readonly id: string;
  readonly label: string;
  /** What is in it. */
  readonly parts?: readonly PageSection[];
}

interface SectionedProps {
  /** What the sections are, such as `Operations`. */
  readonly label: string;
  readonly sections: readonly PageSection[];
  /** What stands above the list, such as a field that narrows it. */
  readonly head?: ReactNode;
  /** Whether the list has the parts of all sections. Default: of the one that is read. */
  readonly isWhole?: boolean;
  readonly children: ReactNode;
}

export function Sectioned(props: SectionedProps) {
  const { label, sections, head, isWhole = false, children } = props;
  const current = useCurrent(sections.flatMap(({ id, parts = [] }) => [id, ...parts.map(idOf)]));
  const list = useRef<HTMLElement>(null);
  useEffect(() => {
    const link = list.current?.querySelector("[aria-current]");
    if (list.current && link && current !== undefined) {
      bringIntoView(link, list.current);
    }
  }, [current]);
  const item = ({ id, label }: PageSection) => (
    <a href={`#${id}`} aria-current={id === current ? "location" : undefined}>
      {label}
    </a>
  );
  return (
    <div className="sectioned">
      <div className="sectioned-columns">
        <div className="sections">
          {head}
          <nav aria-label={label} ref={list}>
            <ul>
              {sections.map((section) => {
                const { id, parts = [] } = section;
                const isRead = id === current || parts.some((part) => part.id === current);
                return (
                  <li key={id}>
                    {item(section)}
                    {(isRead || isWhole) && parts.length > 0 && (
                      <ul>
                        {parts.map((part) => (
                          <li key={part.id}>{item(part)}</li>
                        ))}
                      </ul>
                    )}
                  </li>
                );
              })}
            </ul>
          </nav>
          <select
            aria-label={label}
            value={current}
            onChange={({ target }) => location.assign(`#${target.value}`)}
          >
            {sections.flatMap(({ id, label, parts = [] }) => [
              <option key={id} value={id}>
                {label}
              </option>,
              ...parts.map((part) => (
                <option key={part.id} value={part.id}>
                  {`\u2003${part.label}`}
                </option>
              )),
            ])}
          </select>
        </div>
        {children}
      </div>
    </div>
  );
}

const idOf = ({ id }: PageSection): string => id;

/** Scrolls the list alone: what is read stays where it is. */
function bringIntoView(link: Element, list: HTMLElement): void {
  const [one, all] = [link.getBoundingClientRect(), list.getBoundingClientRect()];
  if (one.top < all.top || one.bottom > all.bottom) {
    list.scrollTop += one.top - all.top - all.height / 2;
  }
}

/** Which of the elements with these ids is read: the one at the top of the view. */
function useCurrent(ids: readonly string[]): string | undefined {
  const [current, setCurrent] = useState(ids[0]);
  const named = useLocation({ select: ({ hash }) => hash });
  const all = ids.join(" ");
  useEffect(() => {
    const find = (): void => setCurrent(currentOf(all.split(" "), named));
    find();
    addEventListener("scroll", find, { passive: true });
    return () => removeEventListener("scroll", find);
  }, [all, named]);
  return current;
}

function currentOf(ids: readonly string[], named: string): string | undefined {
  const elements = ids.flatMap((id) => document.getElementById(id) ?? []);
  const [first] = elements;
  if (first === undefined) {
    return ids[0];
  }
  const { right } = first.getBoundingClientRect();
  // What stands beside the sections, on a wide screen, is in view with each of them.
  const tops = elements
    .map((element) => ({ id: element.id, box: element.getBoundingClientRect() }))
    .filter(({ box }) => box.left < right)
    .map(({ id, box }) => ({ id, top: box.top }));
  // A little below the place to which a link scrolls its top.
  const line = Number.parseFloat(getComputedStyle(first).scrollMarginTop) + 8;
  const { scrollHeight } = document.documentElement;
  // At its end a page scrolls no further, so what it shows there may never be at the top.
  if (Math.ceil(scrollY + innerHeight) >= scrollHeight) {
    const isInView = ({ id, top }: (typeof tops)[number]) =>
      id === named && top >= 0 && top < innerHeight;
    const last = scrollY > 0 ? tops.at(-1) : undefined;
    const shown = tops.find(isInView) ?? last;
    if (shown !== undefined) {
      return shown.id;
    }
  }
  return tops.findLast(({ top }) => top <= line)?.id ?? first.id;
}
