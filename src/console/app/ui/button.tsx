import type { ButtonHTMLAttributes } from "react";

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  /** Default: an outlined button. An `icon` has no words: its name is its `aria-label`. */
  readonly kind?: "primary" | "danger" | "quiet" | "icon";
  /** It works on what it was pressed for: it takes no further press, and keeps the focus. */
  readonly isBusy?: boolean;
  readonly "data-autofocus"?: boolean;
}

export function Button({ kind, isBusy = false, className, onClick, ...rest }: ButtonProps) {
  const classes = [...(kind === "icon" ? ["icon-button"] : ["button", kind]), className]
    .filter(Boolean)
    .join(" ");
  return (
    <button
      type="button"
      {...rest}
      className={classes}
      aria-busy={isBusy}
      aria-disabled={isBusy || undefined}
      onClick={isBusy ? (event) => event.preventDefault() : onClick}
    />
  );
}

interface ShowMoreProps {
  /** The query of the list. */
  readonly of: {
    readonly hasNextPage: boolean;
    readonly isFetchingNextPage: boolean;
    fetchNextPage(): Promise<unknown>;
  };
}

/** The button below a list that has more pages. */
export function ShowMore({
  of: { hasNextPage, isFetchingNextPage, fetchNextPage },
}: ShowMoreProps) {
  return (
    hasNextPage && (
      <Button isBusy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
        Show more
      </Button>
    )
  );
}
