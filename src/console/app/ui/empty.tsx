/** What a page, or a part of one, says when it has nothing to show, and what to do next. */
import type { ReactNode } from "react";

interface EmptyProps {
  readonly title: string;
  /** It stands in a page that has a heading of its own. */
  readonly inPage?: boolean;
  /** It is a card at the beginning of the lines, for what has several parts. Default: in the middle. */
  readonly isCard?: boolean;
  readonly children: ReactNode;
}

export function Empty({ title, inPage = false, isCard = false, children }: EmptyProps) {
  const Heading = inPage ? "h2" : "h1";
  return (
    <section className={isCard ? "card empty-card" : "empty"}>
      <Heading>{title}</Heading>
      {children}
    </section>
  );
}
