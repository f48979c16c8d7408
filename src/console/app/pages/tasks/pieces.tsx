/** What a task that streams has given so far, live; once it has succeeded, its result has all of it. */
import { counted } from "../../ui/counted.ts";
import { useFollowing } from "../../ui/use-following.ts";
import type { TaskPieces } from "./task-pieces.ts";

export function Pieces({ pieces }: { readonly pieces: TaskPieces }) {
  const { attempt, count, text, isCut } = pieces;
  const box = useFollowing(count);
  return (
    <section aria-labelledby="pieces">
      <h2 id="pieces">Result so far</h2>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section className="result-text" ref={box} tabIndex={0} aria-label="Pieces">
        {text}
      </section>
      <p className="secondary">
        {counted(count, "piece")}
        {attempt > 1 && ` of attempt ${attempt}, which began anew`}
        {isCut && "; the page shows the end"}
      </p>
    </section>
  );
}
