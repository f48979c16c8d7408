/** Stack traces as V8 and Python write them, in frames of the author's code and of libraries. */

/** A part of a stack trace. */
export type StackPart =
  /** Between the frames, such as that one error caused another. */
  | { readonly kind: "text"; readonly text: string }
  /** `place` is where it is in the author's code, such as `service.ts:18:80`. */
  | {
      readonly kind: "own";
      readonly text: string;
      readonly place: string;
      /** How often it stands there in a row, as of a function that calls itself; absent: once. */
      readonly times?: number;
    }
  | { readonly kind: "library"; readonly frames: readonly string[] };

const V8_FRAME = /^\s+at (?:.*\()?([^()\s]+?:\d+:\d+)\)?$/;
const V8_LINE = /^\s+at /;
const PYTHON_FRAME = /^\s*File "([^"]+)", line (\d+)/;

/** Whether a text has a frame: the first one is looked for, not all. */
export const hasFrame = (text: string): boolean =>
  text.split("\n").some((line) => placeOf(line) !== undefined);

/** The parts from the first frame on; none where the text has no frame. */
export function stackIn(text: string): readonly StackPart[] {
  const parts: StackPart[] = [];
  let isInFrame = false;
  for (const line of text.split("\n")) {
    const place = placeOf(line);
    if (place !== undefined) {
      isInFrame = true;
      add(parts, line.trimStart(), place);
    } else if (isInFrame && /^\s{4}/.test(line)) {
      extend(parts, line);
    } else if (parts.length > 0 && line.trim() !== "" && !/^\s*[\^~]+\s*$/.test(line)) {
      isInFrame = false;
      parts.push({ kind: "text", text: line });
    }
  }
  return parts;
}

/** The innermost frame of the author's own code: where it happened. */
export function innermost(parts: readonly StackPart[], text: string): StackPart | undefined {
  const own = parts.filter((part) => part.kind === "own");
  return text.includes("Traceback (most recent call last)") ? own.at(-1) : own[0];
}

function placeOf(line: string): string | undefined {
  const python = PYTHON_FRAME.exec(line);
  if (python !== null) {
    return `${python[1]}:${python[2]}`;
  }
  return V8_FRAME.exec(line)?.[1] ?? (V8_LINE.test(line) ? "native" : undefined);
}

/** The paths of an author are from the folder of the service; all others are absolute. */
function isOwn(place: string): boolean {
  return !/^(?:\/|[A-Za-z]:\\|file:|node:|native$|<)|node_modules\/|site-packages\//.test(place);
}

function add(parts: StackPart[], line: string, place: string): void {
  const last = parts.at(-1);
  if (isOwn(place)) {
    if (last?.kind === "own" && last.text === line) {
      parts[parts.length - 1] = { ...last, times: (last.times ?? 1) + 1 };
    } else {
      parts.push({ kind: "own", text: line, place });
    }
    return;
  }
  if (last?.kind === "library") {
    parts[parts.length - 1] = { kind: "library", frames: [...last.frames, line] };
  } else {
    parts.push({ kind: "library", frames: [line] });
  }
}

/** The source below a frame of Python. */
function extend(parts: StackPart[], line: string): void {
  const last = parts.at(-1);
  if (/^\s*[\^~]+\s*$/.test(line) || last === undefined || last.kind === "text") {
    return;
  }
  parts[parts.length - 1] =
    last.kind === "own"
      ? { ...last, text: `${last.text}\n${line}` }
      : { ...last, frames: [...last.frames.slice(0, -1), `${last.frames.at(-1)}\n${line}`] };
}
