import { expect } from "vitest";
import type { It } from "../contract.ts";
import { FIELDS, type Platform } from "../fixtures.ts";

const CODE = {
  digest: "login code",
  codeChallenge: "challenge",
  redirectUri: "http://127.0.0.1:1234/",
};

async function authorize(platform: Platform, who: { organizationId: string; userId: string }) {
  const terms = { hostName: "workstation", expiresAtMs: platform.nowMs + 60_000 };
  await platform.accounts.createLoginCode({
    ...platform.deed("ada@example.com"),
    ...CODE,
    ...who,
    ...terms,
  });
}

function redemption(platform: Platform, changes: Partial<typeof CODE> = {}) {
  const { name: _, ...fields } = FIELDS;
  const token = { tokenId: platform.newId("token"), secret: platform.secret(), fields };
  return { ...platform.deed("somebody"), ...CODE, ...changes, token };
}

export function loginCodesContract(it: It): void {
  it("trades a code for a personal token named after the host, once", async (platform) => {
    const { accounts, nowMs } = platform;
    const who = await platform.setUp();
    await authorize(platform, who);
    const first = redemption(platform);
    const answer = await accounts.redeemLoginCode(first);
    expect(answer).toMatchObject({
      outcome: "redeemed",
      organization: "acme",
      email: "ada@example.com",
      token: { kind: "personal", name: "workstation", createdBy: "ada@example.com", ...who },
    });
    const credential = { digests: [first.token.secret.digest], nowMs };
    expect(await accounts.findCredential(credential)).toMatchObject({
      user: { userId: who.userId },
    });
    expect(await accounts.redeemLoginCode(redemption(platform))).toEqual({ outcome: "invalid" });
    const events = await platform.audit(who.organizationId, 2);
    expect(events).toMatchObject([
      { action: "token.create", actor: "ada@example.com", details: { origin: "browser login" } },
      { action: "login.authorize", details: { host_name: "workstation" } },
    ]);
  });

  for (const [what, changes] of [
    ["challenge", { codeChallenge: "another" }],
    ["redirect", { redirectUri: "http://127.0.0.1:4321/" }],
  ] as const) {
    it(`uses a code up that comes with a wrong ${what}`, async (platform) => {
      const { accounts } = platform;
      await authorize(platform, await platform.setUp());
      const wrong = redemption(platform, changes);
      expect(await accounts.redeemLoginCode(wrong)).toEqual({ outcome: "invalid" });
      expect(await accounts.redeemLoginCode(redemption(platform))).toEqual({ outcome: "invalid" });
    });
  }

  it("refuses codes that are unknown or have expired", async (platform) => {
    const { accounts } = platform;
    await authorize(platform, await platform.setUp());
    const unknown = redemption(platform, { digest: "unknown" });
    expect(await accounts.redeemLoginCode(unknown)).toEqual({ outcome: "invalid" });
    platform.nowMs += 60_000;
    expect(await accounts.redeemLoginCode(redemption(platform))).toEqual({ outcome: "invalid" });
  });

  it("ends with the membership, also for who returns in time", async (platform) => {
    const { accounts } = platform;
    const { organizationId } = await platform.setUp();
    const userId = await platform.join(organizationId, "bob@example.com");
    await authorize(platform, { organizationId, userId });
    const leave = { organizationId, userId, left: true };
    await accounts.removeMember({ ...platform.deed(), ...leave });
    await platform.join(organizationId, "bob@example.com", { userId });
    expect(await accounts.redeemLoginCode(redemption(platform))).toEqual({ outcome: "invalid" });
  });

  it("refuses when the organization or the person has too many tokens", async (platform) => {
    const { accounts } = platform;
    const who = await platform.setUp();
    for (const [limits, outcome] of [
      [{ limit: 0 }, "limit"],
      [{ personalLimit: 0 }, "personal_limit"],
    ] as const) {
      await authorize(platform, who);
      const { token, ...code } = redemption(platform);
      const redeemed = await accounts.redeemLoginCode({ ...code, token: { ...token, ...limits } });
      expect(redeemed).toEqual({ outcome });
    }
  });
}
