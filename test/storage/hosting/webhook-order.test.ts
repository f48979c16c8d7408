import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { listDeliveries } from "../../../src/storage/sql/hosting/deliveries.ts";
import { MIGRATIONS } from "../../../src/storage/sqlite/schema.ts";

it("a page of deliveries is read in the order of an index", () => {
  using db = new DatabaseSync(":memory:");
  for (const { sql } of MIGRATIONS) {
    db.exec(sql);
  }
  for (const filter of [{}, { state: "waiting" }, { after: "1/a" }] as const) {
    const page = { organizationId: "acme", deploymentId: "app", limit: 10, ...filter };
    const { value } = listDeliveries(page).next();
    const { sql, values } = value as { sql: string; values: (string | number)[] };
    const plan = JSON.stringify(db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values));
    expect(plan).toContain("webhook_deliveries_order");
    expect(plan).not.toContain("TEMP B-TREE");
  }
});
