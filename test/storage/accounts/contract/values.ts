import { expect } from "vitest";
import type { It } from "../contract.ts";
import { allPages, type Platform } from "../fixtures.ts";

/** Which of these digests open anything at a time. */
async function valid(platform: Platform, digests: string[], nowMs = platform.nowMs) {
  const found = digests.map((digest) =>
    platform.accounts.findCredential({ digests: [digest], nowMs }),
  );
  return (await Promise.all(found)).map((credential) => credential !== undefined);
}

export function valuesContract(it: It): void {
  it("gives a token another value, the one before living on for the grace", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId } = await platform.setUp();
    const { token, secret: first } = await platform.token(organizationId);
    const second = { ...platform.secret(), hint: "tsro_wxyz" };
    const { tokenId } = token;
    const rotation = { ...platform.deed(), organizationId, tokenId, secret: second };
    const rotate = () => accounts.rotateToken({ ...rotation, graceMs: 60_000 });
    expect(await platform.changesOf(rotate)).toEqual([`token ${tokenId}`]);
    expect(await accounts.getToken({ organizationId, tokenId })).toEqual({
      ...token,
      version: 2,
      hint: "tsro_wxyz",
      previousValidUntilMs: nowMs + 60_000,
    });
    const digests = [first.digest, second.digest];
    expect(await valid(platform, digests)).toEqual([true, true]);
    expect(await valid(platform, digests, nowMs + 60_000)).toEqual([false, true]);
    const old = await accounts.findCredential({ digests: [first.digest], nowMs });
    expect(old).toMatchObject({ tokenId, expiresAtMs: nowMs + 60_000 });
    const current = await accounts.findCredential({ digests: [second.digest], nowMs });
    expect(current).toMatchObject({ tokenId, expiresAtMs: token.expiresAtMs });
    const [newest] = await platform.audit(organizationId);
    expect(newest).toMatchObject({ action: "token.rotate", details: { grace_seconds: "60" } });
  });

  it("never has more than two values, and ends the old one at once without a grace", async (platform) => {
    const { accounts } = platform;
    const { organizationId } = await platform.setUp();
    const { token, secret: first } = await platform.token(organizationId);
    const [second, third, fourth] = [platform.secret(), platform.secret(), platform.secret()];
    const rotate = (secret: typeof second, graceMs: number) => {
      const { tokenId } = token;
      return accounts.rotateToken({ ...platform.deed(), organizationId, tokenId, secret, graceMs });
    };
    const digests = [first, second, third, fourth].map(({ digest }) => digest);
    await rotate(second, 60_000);
    await rotate(third, 60_000);
    expect(await valid(platform, digests)).toEqual([false, true, true, false]);
    const rotated = await rotate(fourth, 0);
    expect(rotated).toMatchObject({ version: 4, previousValidUntilMs: undefined });
    expect(await valid(platform, digests)).toEqual([false, false, false, true]);
    const none = { organizationId, tokenId: "none", secret: platform.secret(), graceMs: 0 };
    expect(await accounts.rotateToken({ ...platform.deed(), ...none })).toBeUndefined();
  });

  it("keeps the sealed value of organization tokens, the current one only", async (platform) => {
    const { accounts } = platform;
    const { organizationId, userId } = await platform.setUp();
    const { token } = await platform.token(organizationId, { secret: platform.secret("sealed 1") });
    expect(token.revealable).toBe(true);
    expect(await accounts.getSealed(token)).toBe("sealed 1");
    const rotation = { organizationId, tokenId: token.tokenId, graceMs: 60_000 };
    const secret = platform.secret("sealed 2");
    await accounts.rotateToken({ ...platform.deed(), ...rotation, secret });
    expect(await accounts.getSealed(token)).toBe("sealed 2");
    expect((await accounts.listSealed({ limit: 10 })).items).toEqual([
      { organizationId, tokenId: token.tokenId, digest: secret.digest, sealed: "sealed 2" },
    ]);
    const personal = { kind: "personal", userId, secret: platform.secret("sealed 3") } as const;
    const { token: theirs } = await platform.token(organizationId, personal);
    expect(theirs.revealable).toBe(false);
    expect(await accounts.getSealed(theirs)).toBeNull();
    expect(await accounts.getSealed({ organizationId, tokenId: "none" })).toBeUndefined();
    expect(await accounts.getSealed({ ...token, organizationId: "other" })).toBeUndefined();
  });

  it("erases sealed values when reveal is switched off, and keeps no new ones", async (platform) => {
    const { accounts } = platform;
    const { organizationId } = await platform.setUp();
    const { token } = await platform.token(organizationId, { secret: platform.secret("sealed 1") });
    const reveal = (revealEnabled: boolean) =>
      accounts.updateOrganization({ ...platform.deed(), organizationId, revealEnabled });
    await reveal(false);
    expect(await accounts.getSealed(token)).toBeNull();
    const late = await platform.token(organizationId, { secret: platform.secret("sealed 2") });
    const rotation = { organizationId, tokenId: token.tokenId, graceMs: 0 };
    const secret = platform.secret("sealed 3");
    await accounts.rotateToken({ ...platform.deed(), ...rotation, secret });
    await reveal(true);
    expect(await accounts.getSealed(token)).toBeNull();
    expect(await accounts.getSealed(late.token)).toBeNull();
    expect((await accounts.listSealed({ limit: 10 })).items).toEqual([]);
  });

  it("replaces digests and sealed values after a rotation of keys", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId } = await platform.setUp();
    const { token, secret } = await platform.token(organizationId, {
      secret: platform.secret("old seal"),
    });
    const { digest } = secret;
    const replace = (from: string, to: string) => accounts.replaceSealed({ digest, from, to });
    await replace("never was", "x");
    await replace("old seal", "new seal");
    expect(await accounts.getSealed(token)).toBe("new seal");
    await accounts.replaceDigest({ digest, newDigest: "new", newDigestKeyId: "key-2" });
    const digests = ["new", digest];
    expect(await accounts.findCredential({ digests, nowMs })).toMatchObject({
      digest: "new",
      digestKeyId: "key-2",
    });
    expect(await valid(platform, [digest])).toEqual([false]);
    expect(
      await platform.changesOf(() => accounts.announceKeys(platform.deed("operator"))),
    ).toEqual(["keys "]);
    const [newest] = await platform.audit(organizationId);
    expect(newest).toMatchObject({ action: "keys.rotate", actor: "operator" });
  });

  it("lists sealed values page by page", async (platform) => {
    const { accounts } = platform;
    const { organizationId } = await platform.setUp();
    for (const sealed of ["1", "2", "3"]) {
      await platform.token(organizationId, { secret: platform.secret(sealed) });
    }
    await platform.token(organizationId);
    const pages = await allPages((after) =>
      accounts.listSealed({ limit: 2, ...(after && { after }) }),
    );
    expect(pages.map((page) => page.map(({ sealed }) => sealed))).toEqual([["1", "2"], ["3"]]);
  });
}
