/** Names with their values. */
import type { ReactNode } from "react";

interface FactsProps {
  readonly entries: Readonly<Record<string, ReactNode>>;
  /** In two columns where there is room. Default: one below the other. */
  readonly inColumns?: boolean;
}

export function Facts({ entries, inColumns = false }: FactsProps) {
  return (
    <dl className={inColumns ? "facts in-columns" : "facts"}>
      {Object.entries(entries).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
