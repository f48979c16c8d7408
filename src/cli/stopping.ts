/** How commands that serve stop: at a signal, and within a time. */

/** How long a stop may take beyond the drain: for workers that are killed, and files that are removed. */
const STOP_GRACE_MS = 20_000;

/** Resolves with the first SIGINT or SIGTERM; a second one ends the process at once. */
export function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let first = true;
    const onSignal = (signal: NodeJS.Signals): void => {
      if (first) {
        first = false;
        resolve(signal);
      } else {
        process.exit(1);
      }
    };
    process.on("SIGINT", onSignal);
    process.on("SIGTERM", onSignal);
  });
}

/** Ends the process during start-up, when no client has been served yet. */
export function stopBeforeReady(signal: NodeJS.Signals, what: string): never {
  process.stderr.write(`\n${signal}: stopped before ${what} was ready\n`);
  process.exit(0);
}

/** Says that the server drains and stops. */
export function sayStopping(
  signal: NodeJS.Signals,
  { drainMs, delayMs = 0 }: { readonly drainMs: number; readonly delayMs?: number },
): void {
  const first = delayMs > 0 ? `serving for ${delayMs / 1000} s while /readyz is 503, then ` : "";
  process.stderr.write(
    `\n${signal}: ${first}taking no more calls, letting those under way finish (at most ${drainMs / 1000} s); again stops at once\n`,
  );
}

/**
 * Stops, and ends this process with 1 where it is still there a grace period after `drainMs`: a
 * service manager would wait for it, and then kill it without its workers. What it had accepted
 * is stored; another node, or this one when it starts again, goes on with it.
 */
export async function stopWithin(
  drainMs: number,
  stop: () => Promise<void>,
  graceMs = STOP_GRACE_MS,
): Promise<void> {
  const limitMs = drainMs + graceMs;
  // It holds nothing up by itself: where nothing else does, the process ends before.
  setTimeout(() => {
    const open = [...new Set(process.getActiveResourcesInfo())].join(", ");
    process.stderr.write(
      `it has not stopped after ${limitMs / 1000} s, and ends now with its workers; still open: ${open}. Accepted tasks are stored and go on when a node runs again. Please report this with the log.\n`,
    );
    process.exit(1);
  }, limitMs).unref();
  await stop();
}
