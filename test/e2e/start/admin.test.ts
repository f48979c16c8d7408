import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Administration } from "../../../src/app/operate/administration.ts";
import { DATABASES, type Database } from "./databases.ts";
import {
  administration,
  bearer,
  cookieOf,
  Folder,
  PASSWORD,
  type Platform,
  start,
} from "./platform.ts";

describe.each(DATABASES)("the operator, while a node runs on %s", (_name, openDatabase) => {
  let folder: Folder;
  let database: Database;
  let platform: Platform;
  let operator: Administration;
  let cookie: Record<string, string>;

  const options = () => (database.url === undefined ? {} : { database: database.url });

  beforeAll(async () => {
    folder = new Folder();
    database = await openDatabase(folder);
    platform = await start(folder, options());
    cookie = await platform.setUp();
    operator = await administration(folder, options());
  });
  afterAll(async () => {
    await operator[Symbol.asyncDispose]();
    await platform[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  it("lists the organizations", async () => {
    expect(await operator.organizations()).toMatchObject([
      { name: "acme", members: 1, monitoringEnabled: false },
    ]);
  });

  it("lists the nodes, and makes people operators, who see them at once", async () => {
    const [node] = await operator.nodes();
    expect(node?.facts).toMatchObject({ workers: 0, waiting: 0 });
    expect(node?.facts?.freeDiskBytes).toBeGreaterThan(0);
    const seen = async () =>
      (await platform.call("/api/v1/operator/nodes", undefined, cookie)).json;
    expect(await seen()).toMatchObject({ nodes: [{ node_id: node?.nodeId }] });
    const [{ email } = { email: "" }] = await operator.operators();
    await operator.setOperator(email, false);
    await vi.waitFor(async () => expect((await seen()).code).toBe("permission_denied"), 5_000);
    await operator.setOperator(email, true);
    await vi.waitFor(async () => expect(await seen()).toHaveProperty("nodes"), 5_000);
    await expect(operator.setOperator("nobody@example.com", true)).rejects.toThrow(
      "no person with the e-mail address nobody@example.com",
    );
  });

  it("cannot set it up a second time", async () => {
    const again = operator.setUp({ organization: "other", email: "eve@example.com" });
    await expect(again).rejects.toThrow("set up already");
  });

  it("lets an organization have monitoring tokens, and stops them", async () => {
    const monitoring = {
      kind: "organization",
      name: "prometheus",
      access: ["monitoring"],
      expires_at: new Date(Date.now() + 3_600_000).toISOString(),
    };
    const refused = await platform.call("/api/v1/tokens", monitoring, cookie);
    expect(refused.json.message).toContain("acme");
    await operator.setMonitoring("acme", true);
    const { value } = await platform.createToken(cookie, monitoring);
    expect(await platform.whoIs(bearer(value))).toBe(200);
    await operator.setMonitoring("acme", false);
    await vi.waitFor(async () => expect(await platform.whoIs(bearer(value))).toBe(401), 5_000);
    await expect(operator.setMonitoring("nobody", true)).rejects.toThrow(
      'no organization "nobody"',
    );
  });

  it("rotates the keys: tokens stay valid, values stay visible, under the new key", async () => {
    const personal = await platform.createToken(cookie);
    const shared = await platform.createToken(cookie, { kind: "organization" });
    const keysBefore = JSON.parse(readFileSync(join(folder.data, "keys.json"), "utf8"));
    const sealId: string = keysBefore.seal[0].id;
    expect(await database.dump()).toContain(`${sealId}.`);

    if (database.url !== undefined) {
      const careless = operator.rotateKeys({ resealOnly: false, oneFile: false });
      await expect(careless).rejects.toThrow("--one-file");
    }
    // The monitoring token's value is sealed too.
    expect(await operator.rotateKeys({ resealOnly: false, oneFile: true })).toEqual({
      outcome: "rotated",
      resealed: 2,
      unreadable: 0,
    });
    const keysAfter = JSON.parse(readFileSync(join(folder.data, "keys.json"), "utf8"));
    expect(keysAfter.seal).toHaveLength(2);
    expect(keysAfter.seal[1]).toEqual(keysBefore.seal[0]);

    for (const { value } of [personal, shared]) {
      expect(await platform.whoIs(bearer(value))).toBe(200);
    }
    const reveal = () => platform.call(`/api/v1/tokens/${shared.id}:reveal`, {}, cookie);
    expect((await reveal()).json.value).toBe(shared.value);
    // What is made from now on is under the new key, also by the node that was running.
    const later = await platform.createToken(cookie, { kind: "organization" });
    expect(await platform.whoIs(bearer(later.value))).toBe(200);
    expect(await operator.rotateKeys({ resealOnly: true, oneFile: false })).toMatchObject({
      resealed: 0,
    });
  });

  it("leaves no secret in the database", async () => {
    const { value } = await platform.createToken(cookie, { kind: "organization" });
    const text = await database.dump();
    expect(text).toContain("ada@example.com");
    for (const secret of [
      value,
      PASSWORD,
      platform.setupCode,
      cookie.cookie?.split("=")[1] ?? "",
    ]) {
      expect(text).not.toContain(secret);
    }
  });

  it("resets a password, which ends the person's sessions", async () => {
    const { generated } = await operator.resetPassword({ email: "ADA@example.com" });
    expect(generated).toMatch(/^\w{20}$/);
    await vi.waitFor(async () => expect(await platform.whoIs(cookie)).toBe(401), 5_000);
    expect((await platform.signIn("ada@example.com", PASSWORD)).status).toBe(401);
    const answer = await platform.signIn("ada@example.com", generated);
    expect(await platform.whoIs(cookieOf(answer))).toBe(200);
    await expect(operator.resetPassword({ email: "eve@example.com" })).rejects.toThrow(
      "no person with the e-mail address eve@example.com",
    );
    const short = operator.resetPassword({ email: "ada@example.com", password: "short" });
    await expect(short).rejects.toThrow("10");
  });

  it("resets a password of which somebody knew, and ends the person's tokens with it", async () => {
    const first = await operator.resetPassword({ email: "ada@example.com", password: PASSWORD });
    const signedIn = cookieOf(await platform.signIn("ada@example.com", PASSWORD));
    const token = await platform.createToken(signedIn);
    const kept = await operator.resetPassword({ email: "ada@example.com", password: PASSWORD });
    expect(kept).toMatchObject({ endedTokens: 0, keptTokens: first.keptTokens + 1 });
    expect(await platform.whoIs(bearer(token.value))).toBe(200);
    const ended = await operator.resetPassword({
      email: "ada@example.com",
      password: PASSWORD,
      revokeTokens: true,
    });
    expect(ended).toMatchObject({ endedTokens: kept.keptTokens, keptTokens: 0 });
    await vi.waitFor(
      async () => expect(await platform.whoIs(bearer(token.value))).toBe(401),
      5_000,
    );
  });
});

describe("the operator", () => {
  it("is told where to look when there is no platform", async () => {
    using folder = new Folder();
    await expect(administration(folder)).rejects.toThrow("name its data with --data");
  });

  it("gets what to set where the keys are in the environment, and seals again after it", async () => {
    using folder = new Folder();
    const first = await start(folder);
    const cookie = await first.setUp();
    const { id, value } = await first.createToken(cookie, { kind: "organization" });
    await first.started.stop();
    const old = readFileSync(join(folder.data, "keys.json"), "utf8");

    await using before = await administration(folder, { env: { TESSERA_KEYS: old } });
    const keys = await before.rotateKeys({ resealOnly: false, oneFile: false });
    if (keys.outcome !== "to_set") {
      throw new Error("the keys were changed");
    }
    // A node that knows them already makes nothing with them yet.
    const prepared = await start(folder, { env: { TESSERA_KEYS: keys.prepared } });
    const early = await prepared.createToken(cookie, { kind: "organization" });
    await prepared.started.stop();

    const env = { TESSERA_KEYS: keys.rotated };
    await using second = await start(folder, { env });
    await using after = await administration(folder, { env });
    const request = { resealOnly: true, oneFile: false };
    expect(await after.rotateKeys(request)).toMatchObject({ resealed: 2, unreadable: 0 });
    expect(await second.whoIs(bearer(value))).toBe(200);
    expect(await second.whoIs(bearer(early.value))).toBe(200);
    const revealed = await second.call(`/api/v1/tokens/${id}:reveal`, {}, cookie);
    expect(revealed.json.value).toBe(value);
  });
});
