/** Names with their values. */
import type { ReactNode } from "react";

export function Facts({ entries }: { readonly entries: Readonly<Record<string, ReactNode>> }) {
  return (
    <dl className="facts">
      {Object.entries(entries).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
