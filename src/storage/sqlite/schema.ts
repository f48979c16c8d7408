/** The SQLite schema: `schema.sql` makes it, and forward-only migrations change it. */
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
      organization_id text NOT NULL,
      deployment_id text NOT NULL,
      name text NOT NULL,
      webhook_id text NOT NULL,
      url text NOT NULL,
      -- Bit n: told of tasks that end with the status n.
      events integer NOT NULL,
      -- Empty: of all endpoints.
      endpoint text NOT NULL,
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
      organization_id text NOT NULL,
      deployment_id text NOT NULL,
      delivery_id text NOT NULL,
      webhook_id text NOT NULL,
      -- The status that the task ended with; 0 for a test.
      event integer NOT NULL,
      task_id text NOT NULL,
      endpoint text NOT NULL,
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
    ALTER TABLE tasks ADD COLUMN webhook text;
    `,
  ),
  expand(
    "schedules",
    `
    -- Calls of a deployment at times that a cron expression says.
    CREATE TABLE schedules (
      organization_id text NOT NULL,
      deployment_id text NOT NULL,
      name text NOT NULL,
      endpoint text NOT NULL,
      -- JSON.
      arguments text NOT NULL,
      cron text NOT NULL,
      time_zone text NOT NULL,
      -- skip, queue or replace.
      overlap text NOT NULL,
      -- none, one or all.
      catch_up text NOT NULL,
      paused integer NOT NULL,
      -- 1: made by a deploy, and kept as its tessera.yaml says.
      declared integer NOT NULL,
      -- Changes with what it says, so that nobody fires what they read before.
      version integer NOT NULL,
      -- The time to fire next; null while it is paused.
      next_at_ms bigint,
      -- The task that it submitted last, and its time; null: none yet.
      task_id text,
      task_at_ms bigint,
      -- What became of its last time: task, skipped, missed or refused; null: none has come.
      outcome text,
      outcome_at_ms bigint,
      message text,
      created_at_ms bigint NOT NULL,
      created_by text NOT NULL,
      updated_at_ms bigint NOT NULL,
      updated_by text NOT NULL,
      PRIMARY KEY (organization_id, deployment_id, name)
    );
    CREATE INDEX schedules_due ON schedules (deployment_id, next_at_ms) WHERE next_at_ms IS NOT NULL;
    `,
  ),
  expand(
    "deliveries of webhooks by their age",
    `
    CREATE INDEX webhook_deliveries_order
      ON webhook_deliveries (deployment_id, created_at_ms, delivery_id);
    `,
  ),
];
