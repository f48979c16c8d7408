/** Progress display: one changing line on a terminal, otherwise a few lines. */

import { inUnits } from "../collections/sizes.ts";
import { shortTime } from "./durations.ts";
import { plain } from "./plain.ts";
import type { Streams } from "./terminal.ts";
import type { UploadProgress } from "./upload.ts";

const BAR_CELLS = 16;
const LINE_CELLS = 79;

/** Transfers are told as fast as they were for so long: long enough not to flicker. */
const RATE_WINDOW_MS = 10_000;
/** Before this time has passed, a rate says nothing. */
const MIN_RATE_WINDOW_MS = 1_000;

export class ProgressLine {
  readonly #streams: Streams;
  readonly #quiet: boolean;
  readonly #rate = new TransferRate();
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
  bar(progress: UploadProgress, doing = "uploading"): void {
    if (!this.#quiet && this.#streams.interactive) {
      const { bytes, totalBytes } = progress;
      const rate = this.#rate.at(bytes, performance.now());
      this.#write(`${barText(progress, doing)}${rateText(rate, totalBytes - bytes)}`);
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

function barText(
  { files, totalFiles, bytes, totalBytes }: UploadProgress,
  doing = "uploading",
): string {
  const fraction = totalBytes === 0 ? 1 : bytes / totalBytes;
  const full = Math.round(fraction * BAR_CELLS);
  const bar = "█".repeat(full) + "░".repeat(BAR_CELLS - full);
  return `${doing} ${bar} ${Math.floor(fraction * 100)} %  ${files} of ${totalFiles} files, ${inUnits(totalBytes)}`;
}

/** How fast bytes have moved lately. */
export class TransferRate {
  readonly #samples: { readonly bytes: number; readonly atMs: number }[] = [];

  /** Bytes per second, when `bytes` have moved in all by a time; undefined while it is too early to tell. */
  at(bytes: number, atMs: number): number | undefined {
    const samples = this.#samples;
    const last = samples.at(-1);
    if (last === undefined || atMs - last.atMs >= MIN_RATE_WINDOW_MS) {
      samples.push({ bytes, atMs });
    }
    while (samples.length > 1 && atMs - (samples[1]?.atMs ?? atMs) >= RATE_WINDOW_MS) {
      samples.shift();
    }
    const [first = { bytes, atMs }] = samples;
    const pastMs = atMs - first.atMs;
    return pastMs < MIN_RATE_WINDOW_MS ? undefined : ((bytes - first.bytes) / pastMs) * 1_000;
  }
}

/** Such as `, 12.5 MiB/s, 2m left`; empty while there is no rate. */
export function rateText(bytesPerSecond: number | undefined, remainingBytes: number): string {
  if (bytesPerSecond === undefined || bytesPerSecond <= 0) {
    return "";
  }
  const left = shortTime((remainingBytes / bytesPerSecond) * 1_000);
  return `, ${inUnits(Math.round(bytesPerSecond))}/s, ${left} left`;
}
