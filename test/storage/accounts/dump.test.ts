/** Whoever gets hold of the database gets nothing to sign in or call with. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type KeyRing, loadKeys, sealingContext } from "../../../src/auth/keys.ts";
import { createCode, createUserCode, digestCode } from "../../../src/auth/one-time-codes.ts";
import { hashPassword } from "../../../src/auth/passwords.ts";
import { createTokenValue } from "../../../src/auth/token-format.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { ask, databaseUrl, newSchema, openPostgres } from "../postgres/databases.ts";
import { openSqlite, TestFolder } from "../sqlite/databases.ts";
import { FIELDS, Platform } from "./fixtures.ts";

/** Everything that is secret in the life of a platform, stored as the platform stores it. */
async function fill(storage: Storage, keys: KeyRing): Promise<string[]> {
  const { accounts } = storage;
  const platform = new Platform(accounts);
  const secrets: string[] = [];
  const keep = (secret: string): string => {
    secrets.push(secret);
    return secret;
  };
  const code = (): string => digestCode(keep(createCode()));
  const { nowMs } = platform;
  const expiresAtMs = nowMs + 60_000;

  await accounts.putSetupCode({ digest: code(), nowMs });
  const who = await platform.setUp();
  const passwordHash = await hashPassword(keep("correct horse battery staple"));
  await accounts.setPassword({ ...platform.deed(), userId: who.userId, passwordHash });
  const session = platform.session(code());
  await accounts.openSession({ ...platform.deed(), userId: who.userId, session });
  await accounts.invite({
    ...platform.deed(),
    ...who,
    invitationId: platform.newId("invitation"),
    digest: code(),
    email: "bob@example.com",
    role: "member",
    expiresAtMs,
    limit: 10,
  });

  const value = (letter: "p" | "o", tokenId: string) => {
    const plain = keep(createTokenValue(letter));
    const [{ digest, keyId }] = keys.digests(plain);
    const sealed = keys.seal(plain, sealingContext(who.organizationId, tokenId));
    return { digest, digestKeyId: keyId, hint: plain.slice(0, 9), sealed };
  };
  for (const kind of ["personal", "organization"] as const) {
    const letter = kind === "personal" ? "p" : "o";
    const token = platform.newToken(who.organizationId, { kind, userId: who.userId });
    const secret = value(letter, token.tokenId);
    expect(await accounts.createToken({ ...token, secret })).toMatchObject({ outcome: "created" });
    const rotation = { ...token, ...platform.deed(), secret: value(letter, token.tokenId) };
    await accounts.rotateToken({ ...rotation, graceMs: 60_000 });
  }

  const login = {
    codeChallenge: "challenge",
    redirectUri: "http://127.0.0.1:1/",
    hostName: "host",
  };
  const codes = [code(), code()] as const;
  for (const digest of codes) {
    await accounts.createLoginCode({ ...platform.deed(), ...who, ...login, digest, expiresAtMs });
  }
  const { name: _, ...fields } = FIELDS;
  const tokenId = platform.newId("token");
  const token = { tokenId, secret: value("p", tokenId), fields };
  const redemption = { ...platform.deed(), ...login, digest: codes[0], token };
  expect(await accounts.redeemLoginCode(redemption)).toMatchObject({ outcome: "redeemed" });
  const [{ digest: userCodeDigest }] = keys.digests(keep(createUserCode()));
  const asker = { hostName: "host", address: "::1", intervalMs: 5_000, limit: 10 };
  const device = { deviceDigest: code(), userCodeDigest, nowMs, expiresAtMs };
  expect(await accounts.createDeviceLogin({ ...device, ...asker })).toBe(true);
  return secrets;
}

/** Of a secret nothing may be left that shortens the guessing: not even its random part alone. */
function tellTales(secret: string): string[] {
  return [secret, secret.slice(-20), Buffer.from(secret).toString("base64url").slice(0, 20)];
}

function keyRing(folder: TestFolder): KeyRing {
  return loadKeys({ path: folder.file("keys.json") });
}

test("the files of a SQLite database hold no secret", async () => {
  using folder = new TestFolder();
  const keys = keyRing(folder);
  const storage = await openSqlite(folder.file());
  const secrets = await fill(storage, keys);
  // The write-ahead log, too, while it is there.
  const read = () =>
    readdirSync(folder.path)
      .filter((name) => name.startsWith("tasks.db"))
      .map((name) => readFileSync(join(folder.path, name), "latin1"))
      .join("\n");
  const open = read();
  await storage[Symbol.asyncDispose]();
  const dump = open + read();
  expect(dump).toContain("ada@example.com");
  expect(secrets.length).toBeGreaterThan(10);
  expect(secrets.flatMap(tellTales).filter((text) => dump.includes(text))).toEqual([]);
});

test("a dump of the tables in Postgres holds no secret", async () => {
  using folder = new TestFolder();
  const keys = keyRing(folder);
  const schema = newSchema();
  await using storage = await openPostgres({ schema });
  const secrets = await fill(storage, keys);
  const url = await databaseUrl();
  const tables = await ask(
    url,
    "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = $1",
    schema,
  );
  expect(tables.length).toBeGreaterThan(15);
  let dump = "";
  for (const { name } of tables) {
    dump += JSON.stringify(await ask(url, `SELECT * FROM ${schema}.${name}`));
  }
  expect(dump).toContain("ada@example.com");
  expect(secrets.flatMap(tellTales).filter((text) => dump.includes(text))).toEqual([]);
});
