/** The Postgres schema: `schema.sql` makes it, and forward-only migrations change it. */
import { readFileSync } from "node:fs";
import { expand, type Migration } from "../migration.ts";

export { STATUS } from "../stored.ts";

/**
 * The migrations, in their order. A released one never changes: digests of all of them are in
 * `test/storage/migrations.json`. CONTRIBUTING.md says how one is added.
 */
export const MIGRATIONS: readonly Migration[] = [
  expand("the schema of 0.1.0", readFileSync(new URL("./schema.sql", import.meta.url), "utf8")),
  expand(
    "webhooks, and the outbox of their deliveries",
    `
    CREATE TABLE webhooks (
      organization_id text COLLATE "C" NOT NULL,
      deployment_id text COLLATE "C" NOT NULL,
      name text COLLATE "C" NOT NULL,
      webhook_id text COLLATE "C" NOT NULL,
      url text NOT NULL,
      -- Bit n: told of tasks that end with the status n.
      events integer NOT NULL,
      -- Empty: of all endpoints.
      endpoint text COLLATE "C" NOT NULL,
      named_only integer NOT NULL,
      sealed text NOT NULL,
      created_at_ms bigint NOT NULL,
      created_by text NOT NULL,
      disabled_at_ms bigint,
      disabled_reason text,
      failures integer NOT NULL DEFAULT 0,
      paused_until_ms bigint NOT NULL DEFAULT 0,
      rotated_until_ms bigint NOT NULL DEFAULT 0,
      PRIMARY KEY (deployment_id, name)
    );
    CREATE TABLE webhook_deliveries (
      organization_id text COLLATE "C" NOT NULL,
      deployment_id text COLLATE "C" NOT NULL,
      delivery_id text COLLATE "C" NOT NULL,
      webhook_id text COLLATE "C" NOT NULL,
      -- The status that the task ended with; 0 for a test.
      event integer NOT NULL,
      task_id text COLLATE "C" NOT NULL,
      endpoint text COLLATE "C" NOT NULL,
      created_at_ms bigint NOT NULL,
      -- 0: waits, 1: delivered, 2: given up.
      state integer NOT NULL DEFAULT 0,
      attempts integer NOT NULL DEFAULT 0,
      -- While it is taken, when it is due again for others.
      next_at_ms bigint NOT NULL DEFAULT 0,
      claim text NOT NULL DEFAULT '',
      answers text NOT NULL DEFAULT '[]',
      body text,
      PRIMARY KEY (deployment_id, delivery_id)
    );
    CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, next_at_ms)
      WHERE state = 0;
    CREATE INDEX webhook_deliveries_webhook
      ON webhook_deliveries (webhook_id, created_at_ms, delivery_id);
    CREATE INDEX webhook_deliveries_task ON webhook_deliveries (deployment_id, task_id);
    CREATE INDEX webhook_deliveries_age ON webhook_deliveries (created_at_ms);
    -- The webhook that the submit has named; null for nearly all.
    ALTER TABLE live_tasks ADD COLUMN webhook text COLLATE "C";
    `,
  ),
];
