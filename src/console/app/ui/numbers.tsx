/** The numbers that a page answers its question with, beside each other at its top. */
import type { ReactNode } from "react";
import "./numbers.css";

export interface PageNumber {
  readonly name: string;
  readonly value: ReactNode;
  /** What kind of number it is, behind it. */
  readonly unit?: string;
  /** What explains it, in a line below it. */
  readonly note?: string;
  /** Its colour. Default: that of text. */
  readonly tone?: "bad" | "warning" | undefined;
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
        {numbers.map(({ name, value, unit, note, tone = "" }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd className={`number-value ${tone}`}>
              {value}
              {unit !== undefined && <span className="number-unit"> {unit}</span>}
            </dd>
            {note !== undefined && <dd className="secondary">{note}</dd>}
          </div>
        ))}
      </dl>
    </section>
  );
}
