/** Says how far a command is: on a terminal in one line that changes, otherwise in few lines. */
import { plain } from "./plain.ts";
import { inUnits } from "./sizes.ts";
import type { Streams } from "./terminal.ts";
import type { UploadProgress } from "./upload.ts";

const BAR_CELLS = 24;
const LINE_CELLS = 79;

export class ProgressLine {
  readonly #streams: Streams;
  readonly #quiet: boolean;
  #shown = "";

  /** A quiet one says nothing: its reader is a program. */
  constructor(streams: Streams, { quiet }: { readonly quiet: boolean }) {
    this.#streams = streams;
    this.#quiet = quiet;
  }

  /** Says what is done now, in the place of what was said before; once. */
  step(text: string): void {
    const line = plain(text);
    if (this.#quiet || line === this.#shown) {
      return;
    }
    this.#write(line);
  }

  /** Shows a bar, where there is a terminal to show it. */
  bar(progress: UploadProgress): void {
    if (!this.#quiet && this.#streams.interactive) {
      this.#write(barText(progress));
    }
  }

  /** Ends the line, or removes it. */
  end(): void {
    if (this.#shown !== "" && this.#streams.interactive) {
      this.#streams.stderr.write("\r\u001b[2K");
    }
    this.#shown = "";
  }

  #write(text: string): void {
    const { stderr, interactive } = this.#streams;
    this.#shown = text;
    // Cut, because a line that wraps cannot be taken back.
    stderr.write(interactive ? `\r\u001b[2K${text.slice(0, LINE_CELLS)}` : `${text}\n`);
  }
}

export function barText({ files, totalFiles, bytes, totalBytes }: UploadProgress): string {
  const fraction = totalBytes === 0 ? 1 : bytes / totalBytes;
  const full = Math.round(fraction * BAR_CELLS);
  const bar = "█".repeat(full) + "░".repeat(BAR_CELLS - full);
  return `uploading ${bar} ${Math.floor(fraction * 100)} %  ${files} of ${totalFiles} files, ${inUnits(totalBytes)}`;
}
