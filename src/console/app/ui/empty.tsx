/** What a page says when it has nothing to show, and what to do next. */
import type { ReactNode } from "react";

export function Empty({
  title,
  children,
}: {
  readonly title: string;
  readonly children: ReactNode;
}) {
  return (
    <section className="empty">
      <h1>{title}</h1>
      {children}
    </section>
  );
}
