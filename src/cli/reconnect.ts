/** Follows a stream over broken connections, with backoff, until Ctrl-C. */
import { Backoff } from "../time/backoff.ts";
import type { CommandRun } from "./command.ts";
import { isPassing } from "./describe.ts";

/** Pause before a stream is followed again; it doubles each time. */
const STREAM_FIRST_PAUSE_MS = 500;
/** The longest such pause. */
const STREAM_MAX_PAUSE_MS = 10_000;

/**
 * How long a stream may say nothing: then it is followed anew, since its connection may be dead
 * without an end.
 */
const STREAM_QUIET_MS = 60_000;

/** What a read of a stream gets, and tells while it goes on. */
export interface StreamProgress {
  /** Aborts the read: the command is interrupted, or the stream was quiet for long. */
  readonly signal: AbortSignal;
  /** The server has answered: from then on a broken connection is not the end. */
  readonly onHeader: () => void;
  /** A message has come. */
  readonly onMessage: () => void;
}

/**
 * Calls `read` again whenever its stream breaks or ends, unless it resolves with true: then no
 * more can come. Rejects with the error of a server that never answered or refuses, and when
 * `signal` is aborted.
 */
export async function followStream(
  call: Pick<CommandRun, "clock" | "done">,
  signal: AbortSignal,
  read: (progress: StreamProgress) => Promise<boolean>,
): Promise<void> {
  const backoff = new Backoff(STREAM_FIRST_PAUSE_MS, STREAM_MAX_PAUSE_MS);
  let hasAnswered = false;
  let isLost = false;
  for (;;) {
    const quiet = new AbortController();
    let timer = setTimeout(() => quiet.abort(), STREAM_QUIET_MS);
    let answers = false;
    const heard = (): void => {
      answers = true;
      hasAnswered = true;
      clearTimeout(timer);
      timer = setTimeout(() => quiet.abort(), STREAM_QUIET_MS);
    };
    const progress = {
      signal: AbortSignal.any([signal, quiet.signal]),
      onHeader: heard,
      onMessage: () => {
        heard();
        backoff.reset();
        isLost = false;
      },
    };
    try {
      if (await read(progress)) {
        return;
      }
    } catch (err) {
      signal.throwIfAborted();
      // One that has begun may have had nothing to say.
      if (quiet.signal.aborted && answers) {
        continue;
      }
      if (!hasAnswered || !(quiet.signal.aborted || isPassing(err))) {
        throw err;
      }
      // Said once, until messages come again.
      if (!isLost) {
        isLost = true;
        call.done("The connection is lost: trying again until Ctrl-C …");
      }
    } finally {
      clearTimeout(timer);
    }
    // A stopping server ends its streams; another one takes over.
    await call.clock.wait(backoff.begin(), signal);
  }
}
