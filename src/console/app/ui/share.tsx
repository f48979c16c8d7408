/** How much of something is used: the numbers, and a thin bar below them. */
import "./share.css";

interface ShareProps {
  readonly used: number;
  readonly limit: number;
  /** The numbers in words, such as `3 of 128`. */
  readonly children: string;
}

/** From here on the bar warns. */
const MIN_WARNED_PART = 0.9;

export function Share({ used, limit, children }: ShareProps) {
  const part = limit > 0 ? Math.min(1, used / limit) : 0;
  return (
    <div className="share">
      <span>{children}</span>
      <div className={part >= MIN_WARNED_PART ? "share-bar much" : "share-bar"}>
        {used > 0 && <div style={{ width: `${part * 100}%` }} />}
      </div>
    </div>
  );
}
