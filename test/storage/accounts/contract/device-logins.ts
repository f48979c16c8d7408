import { expect } from "vitest";
import type { It } from "../contract.ts";
import { FIELDS, type Platform } from "../fixtures.ts";

const TTL_MS = 600_000;
const INTERVAL_MS = 5_000;

function start(platform: Platform, name = "1", limit = 10) {
  return platform.accounts.createDeviceLogin({
    deviceDigest: `device ${name}`,
    userCodeDigest: `user ${name}`,
    hostName: "build server",
    address: "198.51.100.7",
    nowMs: platform.nowMs,
    expiresAtMs: platform.nowMs + TTL_MS,
    intervalMs: INTERVAL_MS,
    limit,
  });
}

function answer(
  platform: Platform,
  who: { organizationId: string; userId: string },
  approve = true,
) {
  const deed = platform.deed("ada@example.com");
  return platform.accounts.answerDeviceLogin({
    ...deed,
    ...who,
    userCodeDigest: "user 1",
    approve,
  });
}

async function ask(platform: Platform, name = "1") {
  const { name: _, ...fields } = FIELDS;
  const token = { tokenId: platform.newId("token"), secret: platform.secret(), fields };
  const parameters = { ...platform.deed("somebody"), deviceDigest: `device ${name}`, token };
  return platform.accounts.redeemDeviceLogin(parameters);
}

export function deviceLoginsContract(it: It): void {
  it("waits for the person, and then gives the token once", async (platform) => {
    const { accounts } = platform;
    const who = await platform.setUp();
    expect(await start(platform)).toBe(true);
    const find = () =>
      accounts.findDeviceLogin({ userCodeDigest: "user 1", nowMs: platform.nowMs });
    expect(await find()).toEqual({
      hostName: "build server",
      address: "198.51.100.7",
      createdAtMs: platform.nowMs,
      expiresAtMs: platform.nowMs + TTL_MS,
    });
    expect(await ask(platform)).toEqual({ outcome: "pending" });
    expect(await answer(platform, who)).toBe(true);
    expect(await answer(platform, who)).toBe(false);
    expect(await find()).toBeUndefined();
    platform.nowMs += INTERVAL_MS;
    expect(await ask(platform)).toMatchObject({
      outcome: "redeemed",
      email: "ada@example.com",
      organization: "acme",
      token: { name: "build server", kind: "personal", ...who },
    });
    expect(await ask(platform)).toEqual({ outcome: "invalid" });
    expect(await platform.audit(who.organizationId, 2)).toMatchObject([
      { action: "token.create", details: { origin: "device login" } },
      { action: "login.approve", details: { asked_from: "198.51.100.7" } },
    ]);
  });

  it("slows down who asks too soon, by five seconds each time", async (platform) => {
    await platform.setUp();
    await start(platform);
    const outcomes: string[] = [];
    // The intervals that are due: 5 s, then 10 s after asking too soon, then 15 s.
    for (const pauseMs of [0, 4_999, 5_000, 15_000, 14_999]) {
      platform.nowMs += pauseMs;
      outcomes.push((await ask(platform)).outcome);
    }
    expect(outcomes).toEqual(["pending", "slow_down", "slow_down", "pending", "slow_down"]);
  });

  it("tells the program of a no, once", async (platform) => {
    const who = await platform.setUp();
    await start(platform);
    expect(await answer(platform, who, false)).toBe(true);
    expect(await ask(platform)).toEqual({ outcome: "denied" });
    expect(await ask(platform)).toEqual({ outcome: "invalid" });
    const [newest] = await platform.audit(who.organizationId);
    expect(newest).toMatchObject({ action: "login.deny" });
  });

  it("ends after its time, for both sides", async (platform) => {
    const { accounts } = platform;
    const who = await platform.setUp();
    await start(platform);
    platform.nowMs += TTL_MS;
    const { nowMs } = platform;
    expect(await accounts.findDeviceLogin({ userCodeDigest: "user 1", nowMs })).toBeUndefined();
    expect(await answer(platform, who)).toBe(false);
    expect(await ask(platform)).toEqual({ outcome: "invalid" });
    expect(await ask(platform, "unknown")).toEqual({ outcome: "invalid" });
  });

  it("is answered by members only, and ends with the membership", async (platform) => {
    const { accounts } = platform;
    const { organizationId } = await platform.setUp();
    const userId = await platform.join(organizationId, "bob@example.com");
    await start(platform);
    expect(await answer(platform, { organizationId, userId: "stranger" })).toBe(false);
    expect(await answer(platform, { organizationId, userId })).toBe(true);
    await accounts.removeMember({ ...platform.deed(), organizationId, userId, left: true });
    await platform.join(organizationId, "bob@example.com", { userId });
    expect(await ask(platform)).toEqual({ outcome: "invalid" });
  });

  it("bounds how many wait, and takes no user code twice", async (platform) => {
    await platform.setUp();
    expect(await start(platform, "1", 2)).toBe(true);
    expect(await start(platform, "2", 2)).toBe(true);
    expect(await start(platform, "3", 2)).toBe(false);
    platform.nowMs += TTL_MS;
    expect(await start(platform, "3", 2)).toBe(true);
    const { accounts, nowMs } = platform;
    const again = { deviceDigest: "other", hostName: "", address: "", intervalMs: 1, limit: 9 };
    const create = (userCodeDigest: string) =>
      accounts.createDeviceLogin({ ...again, userCodeDigest, nowMs, expiresAtMs: nowMs + 1 });
    expect(await create("user 3")).toBe(false);
    expect(await create("user 1")).toBe(true);
  });
}
