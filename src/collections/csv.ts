/** Tables as files for spreadsheets. */

/** Rows as CSV (RFC 4180) below the names of their columns; numbers are not quoted. */
export function csvText(
  columns: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string {
  return [columns, ...rows.map((row) => row.map(cell))]
    .map((row) => `${row.join(",")}\r\n`)
    .join("");
}

/** A text is quoted; a spreadsheet would run what begins like a formula, so that begins with a quote. */
function cell(value: string | number): string {
  if (typeof value !== "string") {
    return String(value);
  }
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return `"${text.replaceAll('"', '""')}"`;
}
