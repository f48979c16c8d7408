/**
 * Row locks that keep the invariants of accounts under concurrency.
 *
 * SQLite has one writer, so nothing is needed there. In Postgres, transactions
 * run concurrently at READ COMMITTED, where a statement sees what was committed
 * before it began. So every change in an organization first updates the
 * organization's row. That lock is held until the end of the transaction; the
 * next transaction waits for it, and its later statements see all of the
 * previous one's changes. Changes within an organization are thereby
 * serialized, which upholds these invariants: the last admin stays, limits
 * hold, an invitation or a code is used once, a token is created only for a
 * member, a token's deployments exist, and no sealed value is stored after
 * reveal was switched off. A decision by a row's content is only allowed under
 * that lock.
 *
 * The platform's own invariants (it is set up once; a bounded number of
 * organizations and of device logins) use rows of `counters` as locks. Locks are taken in a fixed order to
 * avoid deadlocks: one of these counters, one organization (or several by id),
 * its rows by key, and last the counter of changes, for the reason in
 * `changes.ts`.
 */

import type { OrganizationRecord } from "../../accounts/organizations.ts";
import { type Operation, query } from "../operation.ts";
import { ORGANIZATION_COLUMNS, type OrganizationRow, toOrganization } from "./rows.ts";

/** Locks an organization and returns it as it is now; undefined when it does not exist. */
export function* lockOrganization(
  organizationId: string,
): Operation<OrganizationRecord | undefined> {
  const [row] = yield* query<OrganizationRow>(
    `UPDATE organizations SET locks = locks + 1 WHERE organization_id = ?
     RETURNING ${ORGANIZATION_COLUMNS}`,
    organizationId,
  );
  return row && toOrganization(row);
}

/** Takes the lock of one of the platform's own invariants. */
export function* lockPlatform(name: "setup" | "device_logins"): Operation<void> {
  yield* query("UPDATE counters SET value = value + 1 WHERE name = ?", name);
}
