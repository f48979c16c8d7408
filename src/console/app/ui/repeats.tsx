/** How many equal lines a row of a log stands for, as a button that unfolds them, and folds them again. */
import "./repeats.css";

interface RepeatsProps {
  readonly count: number;
  readonly isUnfolded: boolean;
  /** When the first and the last of them were written. */
  readonly times: readonly [from: string, to: string];
  onToggle(): void;
}

/** Nothing for a line that is alone. */
export function Repeats({ count, isUnfolded, times: [from, to], onToggle }: RepeatsProps) {
  const often = `× ${count.toLocaleString("en")}`;
  return (
    count > 1 && (
      <button
        type="button"
        className="repeats"
        aria-expanded={isUnfolded}
        aria-label={`${often}: equal lines`}
        title={isUnfolded ? "Fold them" : `${often}, from ${from} to ${to}`}
        onClick={onToggle}
      >
        {often}
      </button>
    )
  );
}
