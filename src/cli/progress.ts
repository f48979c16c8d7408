/** Progress display: one changing line on a terminal, otherwise a few lines. */

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

  /** `quiet` shows nothing, for output that programs read. */
  constructor(streams: Streams, { quiet }: { readonly quiet: boolean }) {
    this.#streams = streams;
    this.#quiet = quiet;
  }

  /** Shows the current step in place of the previous one; repeats are ignored. */
  step(text: string): void {
    const line = plain(text);
    if (this.#quiet || line === this.#shown) {
      return;
    }
    this.#write(line);
  }

  /** Shows a progress bar on a terminal. */
  bar(progress: UploadProgress): void {
    if (!this.#quiet && this.#streams.interactive) {
      this.#write(barText(progress));
    }
  }

  /** Removes the line. */
  end(): void {
    if (this.#shown !== "" && this.#streams.interactive) {
      this.#streams.stderr.write("\r\u001b[2K");
    }
    this.#shown = "";
  }

  #write(text: string): void {
    const { stderr, interactive } = this.#streams;
    this.#shown = text;
    // Truncated, because a wrapped line cannot be erased.
    stderr.write(interactive ? `\r\u001b[2K${text.slice(0, LINE_CELLS)}` : `${text}\n`);
  }
}

export function barText({ files, totalFiles, bytes, totalBytes }: UploadProgress): string {
  const fraction = totalBytes === 0 ? 1 : bytes / totalBytes;
  const full = Math.round(fraction * BAR_CELLS);
  const bar = "█".repeat(full) + "░".repeat(BAR_CELLS - full);
  return `uploading ${bar} ${Math.floor(fraction * 100)} %  ${files} of ${totalFiles} files, ${inUnits(totalBytes)}`;
}
