/** How much of something is used: its name, the numbers, and a thin bar below them. */
import "./share.css";

interface ShareProps {
  /** What it is of, where no heading says it. */
  readonly name?: string;
  readonly used: number;
  readonly limit: number;
  /** What is wrong in a word or two, where it is nearly all used: the bar alone would not say it. */
  readonly problem?: string | undefined;
  /** The numbers in words, such as `3 of 128`. */
  readonly children: string;
}

/** From here on something is wrong. */
const MIN_WARNED_PART = 0.9;

export function Share({ name, used, limit, problem, children }: ShareProps) {
  const part = limit > 0 ? Math.min(1, used / limit) : 0;
  const isMuch = problem !== undefined && part >= MIN_WARNED_PART;
  return (
    <div className={isMuch ? "share much" : "share"}>
      <div className="share-words">
        {name !== undefined && <span className="share-name">{name}</span>}
        <span>
          {children}
          {isMuch && <strong>, {problem}</strong>}
        </span>
      </div>
      <div className="share-bar">{used > 0 && <div style={{ width: `${part * 100}%` }} />}</div>
    </div>
  );
}
