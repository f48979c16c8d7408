/** Events of the audit log as a file for spreadsheets. */
import type { AuditEventJson } from "../../../../gen/tessera/v1/organization_pb.js";
import { csvText } from "../../../collections/csv.ts";

const COLUMNS = ["time", "action", "actor", "address", "subject", "subject_id", "details"] as const;

/** The events as CSV (RFC 4180), with a heading. */
export function csvOf(events: readonly AuditEventJson[]): string {
  const rows = events.map((event) =>
    [
      ...[event.time, event.action, event.actor, event.address, event.subject, event.subjectId],
      JSON.stringify(event.details ?? {}),
    ].map((value) => value ?? ""),
  );
  return csvText(COLUMNS, rows);
}
