/**
 * The difference of two texts by lines: Myers' algorithm (An O(ND) Difference Algorithm and Its
 * Variations, 1986), greedy, after what is equal at both ends is set aside. Its work is bounded:
 * texts that differ in more lines are shown as one replaced by the other.
 */

export interface DiffLine {
  readonly kind: "same" | "removed" | "added";
  readonly text: string;
  /** Numbers of the line in both texts, from 1; undefined where it has none. */
  readonly before: number | undefined;
  readonly after: number | undefined;
}

/** Lines that are not shown because they are the same. */
export interface Fold {
  readonly kind: "fold";
  readonly lines: readonly DiffLine[];
}

/** Lines removed and added that are looked for; the work and the memory grow with their square. */
const MAX_EDITS = 1_000;

/** Same lines that stay around each change. */
const CONTEXT_LINES = 3;

export function diffLines(before: string, after: string): readonly DiffLine[] {
  const [was, is] = [linesOf(before), linesOf(after)];
  let start = 0;
  while (start < was.length && start < is.length && was[start] === is[start]) {
    start += 1;
  }
  let end = 0;
  while (
    end < was.length - start &&
    end < is.length - start &&
    was[was.length - 1 - end] === is[is.length - 1 - end]
  ) {
    end += 1;
  }
  const kinds = [
    ...Array<DiffLine["kind"]>(start).fill("same"),
    ...editsOf(was.slice(start, was.length - end), is.slice(start, is.length - end)),
    ...Array<DiffLine["kind"]>(end).fill("same"),
  ];
  let [at, now] = [0, 0];
  return kinds.map((kind) => {
    const text = (kind === "removed" ? was[at] : is[now]) ?? "";
    at += kind === "added" ? 0 : 1;
    now += kind === "removed" ? 0 : 1;
    return {
      ...{ kind, text },
      before: kind === "added" ? undefined : at,
      after: kind === "removed" ? undefined : now,
    };
  });
}

/** The lines with long runs of same ones folded. */
export function folded(lines: readonly DiffLine[]): readonly (DiffLine | Fold)[] {
  const isNear = new Uint8Array(lines.length);
  for (const [index, { kind }] of lines.entries()) {
    if (kind !== "same") {
      isNear.fill(1, Math.max(0, index - CONTEXT_LINES), index + CONTEXT_LINES + 1);
    }
  }
  const parts: (DiffLine | Fold)[] = [];
  for (let at = 0; at < lines.length; ) {
    let end = at;
    while (end < lines.length && isNear[end] === isNear[at]) {
      end += 1;
    }
    const run = lines.slice(at, end);
    if (isNear[at] === 1 || run.length === 1) {
      parts.push(...run);
    } else {
      parts.push({ kind: "fold", lines: run });
    }
    at = end;
  }
  return parts;
}

/** A text that ends with a line break has no line after it. */
function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") {
    lines.pop();
  }
  return lines;
}

function editsOf(was: readonly string[], is: readonly string[]): DiffLine["kind"][] {
  const most = Math.min(was.length + is.length, MAX_EDITS);
  const reached = new Int32Array(2 * most + 3);
  const trace: Int32Array[] = [];
  for (let edits = 0; edits <= most; edits += 1) {
    for (let k = -edits; k <= edits; k += 2) {
      const isDown = k === -edits || (k !== edits && at(reached, k - 1) < at(reached, k + 1));
      let x = isDown ? at(reached, k + 1) : at(reached, k - 1) + 1;
      while (x < was.length && x - k < is.length && was[x] === is[x - k]) {
        x += 1;
      }
      reached[k + most + 1] = x;
      if (x >= was.length && x - k >= is.length) {
        return wayBack(trace, { was: was.length, is: is.length });
      }
    }
    trace.push(reached.slice());
  }
  return [...was.map(() => "removed" as const), ...is.map(() => "added" as const)];
}

/** How far a diagonal was reached. */
function at(reached: Int32Array, k: number): number {
  return reached[k + (reached.length - 3) / 2 + 1] ?? 0;
}

function wayBack(
  trace: readonly Int32Array[],
  { was, is }: { readonly was: number; readonly is: number },
): DiffLine["kind"][] {
  const kinds: DiffLine["kind"][] = [];
  let [x, y] = [was, is];
  for (let edits = trace.length; edits > 0; edits -= 1) {
    const reached = trace[edits - 1] ?? new Int32Array(3);
    const k = x - y;
    const isDown = k === -edits || (k !== edits && at(reached, k - 1) < at(reached, k + 1));
    const from = isDown ? at(reached, k + 1) : at(reached, k - 1);
    const fromY = from - (isDown ? k + 1 : k - 1);
    while (x > from && y > fromY) {
      kinds.push("same");
      [x, y] = [x - 1, y - 1];
    }
    kinds.push(isDown ? "added" : "removed");
    [x, y] = [from, fromY];
  }
  while (x > 0) {
    kinds.push("same");
    x -= 1;
  }
  return kinds.reverse();
}
