/** Signal handling of commands that serve. */

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
