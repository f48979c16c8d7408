/** Tables of text, aligned, in Markdown, so that they can be kept as they are. */
import { cpus, loadavg, totalmem } from "node:os";

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? "").length)),
  );
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))).join(" | ")} |\n`;
  const rule = widths.map(
    (width, column) => "-".repeat(column === 0 ? width : width - 1) + (column === 0 ? "" : ":"),
  );
  return line(head) + line(rule) + rows.map(line).join("");
}

export function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}

/** Rounded, with a dash for what was not measured. */
export function figure(value: number, digits = 0): string {
  return Number.isFinite(value) ? value.toFixed(digits) : "–";
}

/** The machine, and how busy it is with other things. */
export function machine(): string {
  const memory = Math.round(totalmem() / 2 ** 30);
  return (
    `${cpus().length} cores (${cpus()[0]?.model.trim()}), ${memory} GiB, ${process.platform}, ` +
    `Node ${process.version}, load average ${loadavg()[0]?.toFixed(1)} at the start`
  );
}
