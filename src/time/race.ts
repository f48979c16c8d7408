/** Races of a promise against the abort of a signal, and against time. What loses goes on, unheard. */

/** The promise, or a rejection with the signal's reason as soon as it aborts. */
export function raceAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) {
      promise.catch(() => undefined); // The abort already explains its failure.
      abort();
      return;
    }
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** The promise; after `maxMs` what `late` returns, or a rejection with what it throws. */
export function within<T, Late>(
  promise: Promise<T>,
  maxMs: number,
  late: () => Late,
): Promise<T | Late> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      new Promise<Late>((end) => end(late())).then(resolve, reject);
    }, maxMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
