/**
 * The contract of the accounts port, for any database: every method and every
 * promise of `src/storage/accounts`. Each test gets a database of its own.
 */
import { describe, test } from "vitest";
import type { CreateDatabase } from "../contract.ts";
import { changesContract } from "./contract/changes.ts";
import { deploymentsContract } from "./contract/deployments.ts";
import { deviceLoginsContract } from "./contract/device-logins.ts";
import { invitationsContract } from "./contract/invitations.ts";
import { loginCodesContract } from "./contract/login-codes.ts";
import { membersContract } from "./contract/members.ts";
import { organizationsContract } from "./contract/organizations.ts";
import { ownSessionsContract } from "./contract/own-sessions.ts";
import { peopleContract } from "./contract/people.ts";
import { pruneContract } from "./contract/prune.ts";
import { racesContract } from "./contract/races.ts";
import { setupContract } from "./contract/setup.ts";
import { tokensContract } from "./contract/tokens.ts";
import { valuesContract } from "./contract/values.ts";
import { verificationContract } from "./contract/verification.ts";
import { verifiedAddressesContract } from "./contract/verified-addresses.ts";
import { Platform } from "./fixtures.ts";

/** Declares a test on a platform with an empty database. */
export type It = (name: string, run: (platform: Platform) => Promise<void>) => void;

export function accountsContract(name: string, createDatabase: CreateDatabase): void {
  const it: It = (testName, run) =>
    test(testName, async () => {
      await using database = await createDatabase();
      await using storage = await database.open();
      await run(new Platform(storage.accounts));
    });
  describe(`accounts contract on ${name}`, () => {
    describe("setup", () => setupContract(it));
    describe("people and sessions", () => peopleContract(it));
    describe("a person's sessions", () => ownSessionsContract(it));
    describe("organizations", () => organizationsContract(it));
    describe("members", () => membersContract(it));
    describe("invitations", () => invitationsContract(it));
    describe("verified addresses", () => verifiedAddressesContract(it));
    describe("deployments", () => deploymentsContract(it));
    describe("tokens", () => tokensContract(it));
    describe("values of tokens", () => valuesContract(it));
    describe("verification", () => verificationContract(it));
    describe("logins in a browser", () => loginCodesContract(it));
    describe("logins by code", () => deviceLoginsContract(it));
    describe("changes", () => changesContract(it));
    describe("pruning", () => pruneContract(it));
    describe("races", () => racesContract(it));
  });
}
