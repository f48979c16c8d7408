/**
 * The rate of a worker's log: what a worker sends of `ctx.log`, and the node takes of it and of
 * the worker's output. The worker keeps to it, so that it chooses which lines are left out; the
 * node drops what is beyond it.
 */

/** Lines of output and of `ctx.log` together, as an average; bursts of 10 s pass. */
export const LOG_LINES_PER_SECOND = 100;

/**
 * Length up to which a line counts as one for the rate of a log; a longer one counts as
 * several.
 */
const LOG_LINE_CHARACTERS = 512;

/** As how many lines a line of this length counts. */
export function linesOf(length: number): number {
  return Math.max(1, length / LOG_LINE_CHARACTERS);
}
