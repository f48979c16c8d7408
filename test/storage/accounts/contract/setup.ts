import { expect } from "vitest";
import type { It } from "../contract.ts";
import { DAY_MS, type Platform } from "../fixtures.ts";

function newSetup(platform: Platform, setupDigest?: string) {
  return {
    ...platform.deed(),
    ...(setupDigest !== undefined && { setupDigest }),
    organizationId: platform.newId("organization"),
    organization: "acme",
    userId: platform.newId("user"),
    email: "ada@example.com",
    displayName: "Ada",
    passwordHash: "hash",
  };
}

export function setupContract(it: It): void {
  it("makes the first person, organization and admin by the link, and signs them in", async (platform) => {
    const { accounts, nowMs } = platform;
    expect(await accounts.needsSetup()).toBe(true);
    expect(await accounts.putSetupCode({ digest: "code", nowMs })).toBe(true);
    const setup = { ...newSetup(platform, "code"), session: platform.session("cookie") };
    expect(await accounts.setUp(setup)).toEqual({ outcome: "done" });
    expect(await accounts.needsSetup()).toBe(false);
    expect(await accounts.findSession({ digest: "cookie", nowMs })).toEqual({
      kind: "session",
      sessionId: setup.session.sessionId,
      userId: setup.userId,
      email: "ada@example.com",
      displayName: "Ada",
      memberships: [{ organizationId: setup.organizationId, organization: "acme", role: "admin" }],
      operator: true,
      createdAtMs: nowMs,
      authenticatedAtMs: nowMs,
      expiresAtMs: nowMs + DAY_MS,
    });
    expect(await platform.audit(setup.organizationId)).toEqual([
      expect.objectContaining({ action: "organization.create", subject: "acme" }),
    ]);
  });

  it("refuses a code that is wrong or was replaced, and changes nothing", async (platform) => {
    const { accounts, nowMs } = platform;
    const outcomeOf = async (digest: string) =>
      (await accounts.setUp(newSetup(platform, digest))).outcome;
    expect(await outcomeOf("code")).toBe("code_invalid");
    await accounts.putSetupCode({ digest: "first", nowMs });
    await accounts.putSetupCode({ digest: "second", nowMs });
    expect(await outcomeOf("first")).toBe("code_invalid");
    expect(await accounts.needsSetup()).toBe(true);
    expect(await outcomeOf("second")).toBe("done");
    expect(await outcomeOf("second")).toBe("already_done");
  });

  it("lets the operator at the machine do without a code, once", async (platform) => {
    await platform.setUp();
    const { accounts, nowMs } = platform;
    expect(await accounts.setUp(newSetup(platform))).toEqual({ outcome: "already_done" });
    expect(await accounts.putSetupCode({ digest: "late", nowMs })).toBe(false);
    expect(await accounts.setUp(newSetup(platform, "late"))).toEqual({ outcome: "already_done" });
  });
}
