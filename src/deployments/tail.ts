/** The last lines that something wrote, for people who ask why it failed. */
const MAX_LINES = 50;
const MAX_LENGTH = 8_192;

export class OutputTail {
  #lines: string[] = [];
  #length = 0;

  add(line: string): void {
    this.#lines.push(line);
    this.#length += line.length;
    while (
      this.#lines.length > MAX_LINES ||
      (this.#length > MAX_LENGTH && this.#lines.length > 1)
    ) {
      this.#length -= this.#lines.shift()?.length ?? 0;
    }
  }

  get lines(): readonly string[] {
    return [...this.#lines];
  }
}
