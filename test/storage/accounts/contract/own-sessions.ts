import { expect } from "vitest";
import type { It } from "../contract.ts";
import { DAY_MS, type Platform } from "../fixtures.ts";

/** Opens a session; returns its id and how to find it. */
async function open(platform: Platform, userId: string, client?: string) {
  const session = { ...platform.session(), ...(client !== undefined && { client }) };
  await platform.accounts.openSession({ ...platform.deed("ada@example.com"), userId, session });
  const { sessionId, digest, expiresAtMs } = session;
  const find = () => platform.accounts.findSession({ digest, nowMs: platform.nowMs });
  return { sessionId, find, expiresAtMs };
}

export function ownSessionsContract(it: It): void {
  it("lists a person's own sessions, the newest first, until they expire", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId, userId } = await platform.setUp();
    const other = await platform.join(organizationId, "bob@example.com");
    const first = await open(platform, userId, "Firefox on Linux");
    const second = await open(platform, userId);
    await open(platform, other);
    const list = (atMs: number, query: object = {}) =>
      accounts.listSessions({ userId, nowMs: atMs, limit: 10, ...query });
    const common = {
      address: "203.0.113.9",
      createdAtMs: nowMs,
      usedAtMs: undefined,
      expiresAtMs: nowMs + DAY_MS,
    };
    const [newer, older] = [
      { ...common, sessionId: second.sessionId, client: "" },
      { ...common, sessionId: first.sessionId, client: "Firefox on Linux" },
    ];
    expect(await list(nowMs)).toEqual({ items: [newer, older], next: undefined });
    const page = await list(nowMs, { limit: 1 });
    expect(page.items).toEqual([newer]);
    expect(await list(nowMs, { limit: 1, after: page.next })).toEqual({
      items: [older],
      next: undefined,
    });
    expect(await list(first.expiresAtMs)).toEqual({ items: [], next: undefined });
  });

  it("records when and from where a session was used, never earlier than before", async (platform) => {
    const { accounts, nowMs } = platform;
    const { userId } = await platform.setUp();
    const { sessionId, find } = await open(platform, userId);
    await accounts.recordSessionUse({ sessionId, timeMs: nowMs + 5, address: "192.0.2.1" });
    await accounts.recordSessionUse({ sessionId, timeMs: nowMs + 4, address: "192.0.2.2" });
    expect(await find()).toMatchObject({ usedAtMs: nowMs + 5 });
    const { items } = await accounts.listSessions({ userId, nowMs, limit: 10 });
    expect(items).toMatchObject([{ usedAtMs: nowMs + 5, address: "192.0.2.1" }]);
  });

  it("ends one, with the logins that wait, and tells nodes and the audit log", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId, userId } = await platform.setUp();
    const kept = await open(platform, userId);
    const ended = await open(platform, userId);
    await accounts.createLoginCode({
      digest: "code",
      organizationId,
      userId,
      codeChallenge: "challenge",
      redirectUri: "http://127.0.0.1:1",
      hostName: "laptop",
      expiresAtMs: nowMs + DAY_MS,
      ...platform.deed("ada@example.com"),
    });
    const end = () =>
      accounts.endSessions({
        ...platform.deed("ada@example.com"),
        userId,
        which: { only: ended.sessionId },
      });
    expect(await platform.changesOf(end)).toEqual([`session ${ended.sessionId}`]);
    expect(await ended.find()).toBeUndefined();
    expect(await kept.find()).toBeDefined();
    expect(await platform.changesOf(end)).toEqual([]);
    const events = await platform.audit(organizationId);
    expect(events.filter(({ action }) => action === "session.end")).toMatchObject([
      { subjectId: userId, details: { sessions_ended: "1" } },
    ]);
  });

  it("ends all but one, and nobody else's", async (platform) => {
    const { accounts } = platform;
    const { organizationId, userId } = await platform.setUp();
    const other = await platform.join(organizationId, "bob@example.com");
    const theirs = await open(platform, other);
    const [kept, one, two] = [
      await open(platform, userId),
      await open(platform, userId),
      await open(platform, userId),
    ];
    const end = (which: { readonly only: string } | { readonly allBut: string }) =>
      accounts.endSessions({ ...platform.deed("ada@example.com"), userId, which });
    expect(await end({ only: theirs.sessionId })).toBe(0);
    expect(await end({ allBut: kept.sessionId })).toBe(2);
    for (const session of [one, two]) {
      expect(await session.find()).toBeUndefined();
    }
    expect(await kept.find()).toBeDefined();
    expect(await theirs.find()).toBeDefined();
    expect(await end({ allBut: kept.sessionId })).toBe(0);
  });
}
