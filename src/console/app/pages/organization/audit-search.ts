/** The filter of the audit log, which is in the address. */
import { type RangeSearch, readRange } from "../../ui/time-range.ts";

/** Which events are listed, as the address has it. */
export interface AuditSearch extends RangeSearch {
  readonly actor?: string;
  readonly action?: string;
  readonly subject?: string;
}

/** Leaves out what no filter has. */
export function readAuditSearch(given: Record<string, unknown>): AuditSearch {
  const { actor, action, subject } = given;
  const text = (value: unknown): value is string => typeof value === "string" && value !== "";
  return {
    ...(text(actor) && { actor }),
    ...(text(action) && { action }),
    ...(text(subject) && { subject }),
    ...readRange(given),
  };
}
