/** Events of the audit log as a file for spreadsheets. */
import type { AuditEventJson } from "../../../../gen/tessera/v1/organization_pb.js";

const COLUMNS = ["time", "action", "actor", "address", "subject", "subject_id", "details"] as const;

/** The events as CSV (RFC 4180), with a heading. */
export function csvOf(events: readonly AuditEventJson[]): string {
  const rows = events.map((event) =>
    [
      ...[event.time, event.action, event.actor, event.address, event.subject, event.subjectId],
      JSON.stringify(event.details ?? {}),
    ].map((value) => cell(value ?? "")),
  );
  return [COLUMNS, ...rows].map((row) => `${row.join(",")}\r\n`).join("");
}

/** Quoted; a spreadsheet would run what begins like a formula, so that begins with a quote. */
function cell(value: string): string {
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return `"${text.replaceAll('"', '""')}"`;
}
