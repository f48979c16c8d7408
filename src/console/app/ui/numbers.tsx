/** The numbers that a page answers its question with, beside each other at its top. */
import type { ReactNode } from "react";
import "./numbers.css";

export interface PageNumber {
  readonly name: string;
  readonly value: ReactNode;
  /** What explains it, below it. */
  readonly note?: ReactNode;
  readonly isBad?: boolean;
}

interface NumbersProps {
  /** Names them for screen readers. */
  readonly label: string;
  readonly numbers: readonly PageNumber[];
}

export function Numbers({ label, numbers }: NumbersProps) {
  return (
    <section aria-label={label}>
      <dl className="numbers">
        {numbers.map(({ name, value, note, isBad = false }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd className={isBad ? "number-value bad" : "number-value"}>{value}</dd>
            {note !== undefined && <dd className="secondary">{note}</dd>}
          </div>
        ))}
      </dl>
    </section>
  );
}
