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

/** From this part on it is nearly all used. */
const MIN_WARNED_PART = 0.9;

export function Share({ name, used, limit, problem, children }: ShareProps) {
  const isMuch = problem !== undefined && isNearlyAll({ used, limit });
  return (
    <div className={isMuch ? "share much" : "share"}>
      <div className="share-words">
        {name !== undefined && <span className="share-name">{name}</span>}
        <span>
          {children}
          {isMuch && <strong>, {problem}</strong>}
        </span>
      </div>
      <ShareBar used={used} limit={limit} isMuch={isMuch} />
    </div>
  );
}

export interface Used {
  readonly used: number;
  readonly limit: number;
}

/** From 0 to 1. */
export const partOf = ({ used, limit }: Used): number =>
  limit > 0 ? Math.min(1, used / limit) : 0;

export const isNearlyAll = (one: Used): boolean => partOf(one) >= MIN_WARNED_PART;

/** The bar alone, below numbers that say the same. */
export function ShareBar({ isMuch, ...one }: Used & { readonly isMuch: boolean }) {
  return (
    <div className={isMuch ? "share-bar much" : "share-bar"}>
      {one.used > 0 && <div style={{ width: `${partOf(one) * 100}%` }} />}
    </div>
  );
}
