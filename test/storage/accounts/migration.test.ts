/** What holds of accounts that were made before addresses were verified. */
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { verifiedAddressesSchema } from "../../../src/storage/sql/accounts/schema.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { ask, databaseUrl, newSchema, openPostgres } from "../postgres/databases.ts";
import { openSqlite, TestFolder } from "../sqlite/databases.ts";
import { Platform } from "./fixtures.ts";

const COLUMNS = [
  ["users", "email_verified"],
  ["organizations", "invitation_links_enabled"],
  ["invitations", "mailed"],
] as const;

interface Before {
  open(): Promise<Storage>;
  /** Takes from the database what the migration brought, and migrates it again. */
  migrateAgain(): Promise<void>;
  end(): Promise<void>;
}

function sqlite(): Before {
  const folder = new TestFolder();
  return {
    open: () => openSqlite(folder.file()),
    async migrateAgain() {
      using db = new DatabaseSync(folder.file());
      for (const [table, column] of COLUMNS) {
        db.exec(`ALTER TABLE ${table} DROP COLUMN ${column}`);
      }
      db.exec(verifiedAddressesSchema());
    },
    async end() {
      folder[Symbol.dispose]();
    },
  };
}

function postgres(): Before {
  const schema = newSchema();
  return {
    open: () => openPostgres({ schema, leaseClock: "caller" }),
    async migrateAgain() {
      const client = new pg.Client(await databaseUrl());
      await client.connect();
      const dropped = COLUMNS.map(
        ([table, column]) => `ALTER TABLE ${table} DROP COLUMN ${column};`,
      );
      await client.query(
        `SET search_path = ${schema}; ${dropped.join(" ")} ${verifiedAddressesSchema()}`,
      );
      await client.end();
    },
    async end() {
      await ask(await databaseUrl(), `DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    },
  };
}

describe.each([
  ["SQLite", sqlite],
  ["Postgres", postgres],
])("a database of %s from before", (_, create) => {
  it("takes as verified the first admin and who has no password, and shows links of the first organization", async () => {
    const before = create();
    try {
      {
        await using storage = await before.open();
        const platform = new Platform(storage.accounts);
        const { accounts } = platform;
        const { organizationId, userId } = await platform.setUp();
        platform.nowMs += 1_000;
        await platform.join(organizationId, "password@example.com", { role: "admin" });
        const email = "provider@example.com";
        const { invitationId } = await platform.invite(organizationId, email);
        const newUser = { email, displayName: "" };
        const accepted = { invitationId, userId: platform.newId("user"), newUser };
        await accounts.acceptInvitation({ ...platform.deed(), ...accepted });
        const second = { organizationId: platform.newId("organization"), name: "globex" };
        await accounts.createOrganization({
          ...platform.deed(),
          ...second,
          userId,
          displayName: "",
        });
        await platform.invite(organizationId, "open@example.com");
      }
      await before.migrateAgain();
      await using storage = await before.open();
      const { accounts } = storage;
      const verified = async (name: string) =>
        (await accounts.findUser({ email: `${name}@example.com` }))?.emailVerified;
      expect(await verified("ada")).toBe(true);
      expect(await verified("provider")).toBe(true);
      expect(await verified("password")).toBe(false);
      const { items } = await accounts.listOrganizations({ limit: 10 });
      expect(items).toMatchObject([
        { name: "acme", invitationLinksEnabled: true },
        { name: "globex", invitationLinksEnabled: false },
      ]);
      const open = { email: "open@example.com", nowMs: 0 };
      expect(await accounts.findInvitation(open)).toMatchObject({ mailed: false });
    } finally {
      await before.end();
    }
  });
});
