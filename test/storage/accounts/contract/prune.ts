import { expect } from "vitest";
import type { It } from "../contract.ts";
import { DAY_MS } from "../fixtures.ts";

const HOUR_MS = 3_600_000;

export function pruneContract(it: It): void {
  it("deletes what ended long ago, and nothing else", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId, userId } = await platform.setUp();
    const session = platform.session();
    await accounts.openSession({ ...platform.deed(), userId, session });
    await platform.invite(organizationId, "bob@example.com");
    const { token, secret } = await platform.token(organizationId);
    const rotation = { organizationId, tokenId: token.tokenId, graceMs: DAY_MS };
    await accounts.rotateToken({ ...platform.deed(), ...rotation, secret: platform.secret() });
    const prune = (atMs: number) => accounts.pruneAccounts({ nowMs: atMs, limit: 100 });
    expect(await prune(nowMs)).toBe(0);

    // The changes: of the setup, of the token, of its rotation.
    expect(await prune(nowMs + HOUR_MS + 1)).toBe(3);
    expect(await accounts.listChanges({ afterSequence: 0, limit: 9 })).toEqual({
      changes: [],
      latest: 3,
    });
    // The old value, an hour after its grace.
    expect(await accounts.findCredential({ digests: [secret.digest], nowMs })).toBeDefined();
    expect(await prune(nowMs + DAY_MS + HOUR_MS + 1)).toBe(1);
    expect(await accounts.findCredential({ digests: [secret.digest], nowMs })).toBeUndefined();
    expect(await accounts.getToken(token)).toMatchObject({ previousValidUntilMs: undefined });
    // The session, a day after its end.
    expect(await prune(nowMs + 2 * DAY_MS + 1)).toBe(1);
    expect(await accounts.findSession({ digest: session.digest, nowMs })).toBeUndefined();
    // The invitation, 30 days after its end.
    expect(await prune(nowMs + 37 * DAY_MS + 1)).toBe(1);
    expect(await prune(nowMs + 9_999 * DAY_MS)).toBe(0);
    expect(await platform.audit(organizationId)).toHaveLength(5);
  });

  it("deletes codes, at most so many of each kind at once", async (platform) => {
    const { accounts, nowMs } = platform;
    const who = await platform.setUp();
    await accounts.pruneAccounts({ nowMs: nowMs + 2 * HOUR_MS, limit: 100 });
    for (const name of ["1", "2", "3"]) {
      await accounts.createLoginCode({
        ...platform.deed(),
        ...who,
        digest: name,
        codeChallenge: "challenge",
        redirectUri: "http://127.0.0.1:1/",
        hostName: "host",
        expiresAtMs: nowMs + 60_000,
      });
      await accounts.createDeviceLogin({
        deviceDigest: `device ${name}`,
        userCodeDigest: `user ${name}`,
        hostName: "host",
        address: "::1",
        nowMs,
        expiresAtMs: nowMs + 60_000,
        intervalMs: 5_000,
        limit: 10,
      });
    }
    const later = nowMs + 2 * HOUR_MS;
    const prune = () => accounts.pruneAccounts({ nowMs: later, limit: 2 });
    expect([await prune(), await prune(), await prune()]).toEqual([4, 2, 0]);
  });
}
