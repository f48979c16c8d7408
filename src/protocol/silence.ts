/** How long a worker on another machine may be silent before its calls are given to others. */

/** The longest silence that a worker on another machine can ask for. */
export const MAX_SILENCE_LIMIT_MS = 86_400_000;
