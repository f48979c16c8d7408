/** A buffer of the last lines of output, which help people see why a service failed. */

/** Last lines of a worker's output that are kept, for people who ask why it failed. */
const MAX_TAIL_LINES = 50;
/** Last characters of a worker's output that are kept. */
const MAX_TAIL_CHARACTERS = 8_192;

export class OutputTail {
  #lines: string[] = [];
  #length = 0;

  add(line: string): void {
    this.#lines.push(line);
    this.#length += line.length;
    while (
      this.#lines.length > MAX_TAIL_LINES ||
      (this.#length > MAX_TAIL_CHARACTERS && this.#lines.length > 1)
    ) {
      this.#length -= this.#lines.shift()?.length ?? 0;
    }
  }

  get lines(): readonly string[] {
    return [...this.#lines];
  }
}
