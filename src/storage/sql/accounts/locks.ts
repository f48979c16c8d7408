/**
 * What keeps the rules of accounts true when nodes work at the same time.
 *
 * In SQLite there is one writer, and nothing to do. In Postgres transactions
 * run side by side at READ COMMITTED, where a statement sees what others have
 * committed before it began. So whatever changes something in an organization
 * first updates the organization's row: the row's lock is held until the
 * transaction ends, the next one waits for it there, and every statement after
 * that sees all that the one before did. Within an organization, changes
 * happen one after the other, which is what makes these rules hold: one admin
 * stays, limits, an invitation or a code is used once, a token is made only
 * for a member, names of deployments are those there are, no sealed value is
 * stored after reveal was switched off. Reading a row and deciding by it is
 * only allowed under that lock.
 *
 * The platform's own rules (it is set up once; a bounded number of device
 * logins) have rows in `counters` for locks. Locks are taken in one order, so
 * that nobody waits in a circle: a counter of these, one organization (or
 * several, by their ids), rows within it by their keys, and at the very end
 * the counter of changes, whose reason is in `changes.ts`.
 */

import type { OrganizationRecord } from "../../accounts/organizations.ts";
import { type Operation, query } from "../operation.ts";
import { type OrganizationRow, toOrganization } from "./rows.ts";

/** Takes an organization's lock; answers it as it is now, undefined for none. */
export function* lockOrganization(
  organizationId: string,
): Operation<OrganizationRecord | undefined> {
  const [row] = yield* query<OrganizationRow>(
    `UPDATE organizations SET locks = locks + 1 WHERE organization_id = ?
     RETURNING organization_id, name, display_name, created_at_ms, monitoring_enabled,
       reveal_enabled`,
    organizationId,
  );
  return row && toOrganization(row);
}

/** Takes the lock of one of the platform's own rules. */
export function* lockPlatform(name: "setup" | "device_logins"): Operation<void> {
  yield* query("UPDATE counters SET value = value + 1 WHERE name = ?", name);
}
