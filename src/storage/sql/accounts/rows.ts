/** Maps rows that several operations read to records of the port. */

import type { OrganizationRecord } from "../../accounts/organizations.ts";
import type { Page } from "../../accounts/page.ts";

export interface OrganizationRow {
  readonly organization_id: string;
  readonly name: string;
  readonly display_name: string;
  readonly created_at_ms: number;
  readonly monitoring_enabled: number;
  readonly reveal_enabled: number;
  readonly invitation_links_enabled: number;
  readonly monitoring_asked_at_ms: number | null;
  readonly monitoring_asked_by: string | null;
}

/** The columns of `OrganizationRow`. */
export const ORGANIZATION_COLUMNS =
  "organization_id, name, display_name, created_at_ms, monitoring_enabled, reveal_enabled, " +
  "invitation_links_enabled, monitoring_asked_at_ms, monitoring_asked_by";

export function toOrganization(row: OrganizationRow): OrganizationRecord {
  const monitoringEnabled = row.monitoring_enabled === 1;
  const { monitoring_asked_at_ms: atMs, monitoring_asked_by: by } = row;
  return {
    organizationId: row.organization_id,
    name: row.name,
    displayName: row.display_name,
    createdAtMs: row.created_at_ms,
    monitoringEnabled,
    // A node of a release that knows no requests enables monitoring without ending one.
    ...(!monitoringEnabled && atMs !== null && by !== null && { monitoringAsked: { by, atMs } }),
    revealEnabled: row.reveal_enabled === 1,
    invitationLinksEnabled: row.invitation_links_enabled === 1,
  };
}

/** Makes a page of at most `limit` items from a query that fetched one more. */
export function toPage<Item>(
  items: readonly Item[],
  limit: number,
  keyOf: (item: Item) => string,
): Page<Item> {
  const page = items.slice(0, limit);
  const last = page.at(-1);
  return { items: page, next: items.length > limit && last ? keyOf(last) : undefined };
}
