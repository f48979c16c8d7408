import { expect } from "vitest";
import type { It } from "../contract.ts";
import { ENDPOINT_ACCESS, FIELDS } from "../fixtures.ts";

export function verificationContract(it: It): void {
  it("answers all that verification has to know of a value", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId, userId } = await platform.setUp();
    const one = await platform.deployment(organizationId, "one");
    const two = await platform.deployment(organizationId, "two");
    const fields = {
      access: { ...ENDPOINT_ACCESS, developerOperations: true },
      deployments: ["two", "one"],
      notBeforeMs: nowMs + 5,
      allowedNetworks: ["192.0.2.0/24"],
    };
    const options = { kind: "personal", userId, fields } as const;
    const { token, secret } = await platform.token(organizationId, options);
    const digests = ["under another key", secret.digest];
    expect(await accounts.findCredential({ digests, nowMs })).toEqual({
      kind: "token",
      digest: secret.digest,
      digestKeyId: "key-1",
      tokenId: token.tokenId,
      generation: 1,
      tokenKind: "personal",
      tokenName: "laptop",
      organizationId,
      organization: "acme",
      access: fields.access,
      allDeployments: false,
      deployments: [
        { deploymentId: one, name: "one" },
        { deploymentId: two, name: "two" },
      ],
      expiresAtMs: token.expiresAtMs,
      notBeforeMs: nowMs + 5,
      allowedNetworks: ["192.0.2.0/24"],
      user: { userId, email: "ada@example.com", role: "admin" },
      monitoringEnabled: false,
    });
  });

  it("answers the same of a token's id, while there is such a token", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId, userId } = await platform.setUp();
    const options = { kind: "personal", userId } as const;
    const { token, secret } = await platform.token(organizationId, options);
    const { tokenId } = token;
    const byValue = () => accounts.findCredential({ digests: [secret.digest], nowMs });
    const byId = (organization = organizationId) =>
      accounts.findCredentialOf({ organizationId: organization, tokenId });
    expect(await byId()).toEqual(await byValue());
    expect(await byId("another organization")).toBeUndefined();
    const renewed = { ...secret, digest: "its next value" };
    const graceMs = 60_000;
    await accounts.rotateToken({
      ...platform.deed(),
      ...{ organizationId, tokenId, secret: renewed, graceMs },
    });
    expect(await byId()).toMatchObject({ tokenId, digest: renewed.digest });
    const byGeneration = (generation: number) =>
      accounts.findCredentialOf({ organizationId, tokenId, generation });
    const ends = platform.nowMs + graceMs;
    const before = { digest: secret.digest, generation: 1, expiresAtMs: ends };
    expect(await byGeneration(1)).toMatchObject(before);
    const { expiresAtMs } = token;
    expect(await byGeneration(2)).toMatchObject({ digest: renewed.digest, expiresAtMs });
    const last = { ...secret, digest: "its last value" };
    await accounts.rotateToken({
      ...platform.deed(),
      ...{ organizationId, tokenId, secret: last, graceMs: 0 },
    });
    const found = await Promise.all([1, 2, 3].map(byGeneration));
    expect(found.map((each) => each?.digest)).toEqual([undefined, undefined, last.digest]);
    await accounts.deleteToken({ ...platform.deed(), organizationId, tokenId });
    expect(await byId()).toBeUndefined();
  });

  it("knows no person of an organization token", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId, userId } = await platform.setUp();
    const { secret } = await platform.token(organizationId, {
      userId,
      fields: { access: ENDPOINT_ACCESS, allDeployments: true },
    });
    const credential = await accounts.findCredential({ digests: [secret.digest], nowMs });
    expect(credential).toMatchObject({ tokenKind: "organization", allDeployments: true });
    expect(credential?.user).toBeUndefined();
  });

  it("follows the role of a personal token's person", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId } = await platform.setUp();
    const userId = await platform.join(organizationId, "bob@example.com", { role: "admin" });
    const { secret } = await platform.token(organizationId, { kind: "personal", userId });
    const change = { organizationId, userId, role: "member" } as const;
    await accounts.changeRole({ ...platform.deed(), ...change });
    expect(await accounts.findCredential({ digests: [secret.digest], nowMs })).toMatchObject({
      user: { role: "member" },
    });
  });

  it("answers tokens that have expired: whoever remembers them looks at the time", async (platform) => {
    const { accounts } = platform;
    const { organizationId } = await platform.setUp();
    const { secret } = await platform.token(organizationId);
    const later = { digests: [secret.digest], nowMs: FIELDS.expiresAtMs + 1 };
    expect(await accounts.findCredential(later)).toMatchObject({ expiresAtMs: FIELDS.expiresAtMs });
  });

  it("knows nothing of digests that were never stored, or of none", async (platform) => {
    const { accounts, nowMs } = platform;
    await platform.setUp();
    expect(await accounts.findCredential({ digests: ["a", "b", "c"], nowMs })).toBeUndefined();
    expect(await accounts.findCredential({ digests: [], nowMs })).toBeUndefined();
    expect(await accounts.findSession({ digest: "a", nowMs })).toBeUndefined();
  });
}
