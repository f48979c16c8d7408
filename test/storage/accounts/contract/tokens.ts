import { expect } from "vitest";
import type { TokenUpdate } from "../../../../src/storage/accounts/tokens.ts";
import type { It } from "../contract.ts";
import { allPages, ENDPOINT_ACCESS, FIELDS, MONITORING_ACCESS } from "../fixtures.ts";

export function tokensContract(it: It): void {
  it("creates a token with every field", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId, userId } = await platform.setUp();
    const deploymentId = await platform.deployment(organizationId, "summarizer");
    const fields = {
      name: "nightly jobs",
      description: "calls the summarizer",
      access: { ...ENDPOINT_ACCESS, developerOperations: true },
      deployments: ["summarizer"],
      notBeforeMs: nowMs + 1_000,
      allowedNetworks: ["10.0.0.0/8", "2001:db8::/32"],
    };
    const options = { kind: "personal", userId, fields } as const;
    const parameters = platform.newToken(organizationId, options);
    const expected = {
      ...FIELDS,
      ...fields,
      tokenId: parameters.tokenId,
      organizationId,
      organization: "acme",
      kind: "personal",
      deployments: [{ deploymentId, name: "summarizer" }],
      createdAtMs: nowMs,
      createdBy: "ada@example.com",
      userId,
      updatedAtMs: nowMs,
      lastUsedAtMs: undefined,
      lastUsedAddress: undefined,
      version: 1,
      hint: "tsrp_abcd",
      previousValidUntilMs: undefined,
      revealable: false,
    };
    const changes = await platform.changesOf(async () =>
      expect(await accounts.createToken(parameters)).toEqual({
        outcome: "created",
        token: expected,
      }),
    );
    expect(changes).toEqual([`token ${parameters.tokenId}`]);
    expect(await accounts.getToken(parameters)).toEqual(expected);
    const elsewhere = { organizationId: "other", tokenId: parameters.tokenId };
    expect(await accounts.getToken(elsewhere)).toBeUndefined();
    const [newest] = await platform.audit(organizationId);
    expect(newest).toMatchObject({
      action: "token.create",
      subject: "nightly jobs",
      details: { kind: "personal", access: "developer_operations protected_endpoint" },
    });
  });

  it("refuses who is no member, unknown deployments, monitoring that is off, and too many", async (platform) => {
    const { accounts } = platform;
    const { organizationId } = await platform.setUp();
    await platform.deployment(organizationId, "summarizer");
    const create = (options: Parameters<typeof platform.newToken>[1]) =>
      accounts.createToken(platform.newToken(organizationId, options));
    expect(await create({ kind: "personal", userId: "stranger" })).toEqual({
      outcome: "not_member",
    });
    expect(await create({ kind: "personal" })).toEqual({ outcome: "not_member" });
    expect(await create({ fields: { access: MONITORING_ACCESS } })).toEqual({
      outcome: "monitoring_disabled",
    });
    const deployments = ["summarizer", "nothing", "nowhere"];
    expect(await create({ fields: { access: ENDPOINT_ACCESS, deployments } })).toEqual({
      outcome: "unknown_deployments",
      names: ["nothing", "nowhere"],
    });
    expect(await create({ limit: 0 })).toEqual({ outcome: "limit" });
    const nowhere = platform.newToken("no organization");
    expect(await accounts.createToken(nowhere)).toEqual({ outcome: "not_member" });
    const listed = await accounts.listTokens({ organizationId, viewerId: undefined, limit: 5 });
    expect(listed.items).toEqual([]);
  });

  it("gives each person a share of personal tokens in each organization", async (platform) => {
    const { accounts } = platform;
    const ada = await platform.setUp();
    const { organizationId, userId } = ada;
    const second = { organizationId: platform.newId("organization"), userId };
    const globex = { ...second, name: "globex", displayName: "" };
    await accounts.createOrganization({ ...platform.deed(), ...globex });
    const bob = { organizationId, userId: await platform.join(organizationId, "bob@example.com") };
    const create = (who: typeof ada, options: Parameters<typeof platform.newToken>[1] = {}) => {
      const personal = { kind: "personal", userId: who.userId, personalLimit: 2 } as const;
      const token = platform.newToken(who.organizationId, { ...personal, ...options });
      return accounts.createToken(token);
    };
    const expired = { fields: { expiresAtMs: platform.nowMs - 1 } };
    expect(await create(bob, expired)).toMatchObject({ outcome: "created" });
    const made = await create(bob);
    expect(made).toMatchObject({ outcome: "created" });
    expect(await platform.changesOf(() => create(bob))).toEqual([]);
    expect(await create(bob)).toEqual({ outcome: "personal_limit" });
    // They can do something about their own share.
    expect(await create(bob, { limit: 0 })).toEqual({ outcome: "personal_limit" });
    expect(await create(ada)).toMatchObject({ outcome: "created" });
    expect(await create(ada, { kind: "organization" })).toMatchObject({ outcome: "created" });
    expect(await create(ada, { kind: "organization" })).toMatchObject({ outcome: "created" });
    expect(await create(ada)).toMatchObject({ outcome: "created" });
    expect(await create(ada)).toEqual({ outcome: "personal_limit" });
    expect(await create(ada, { limit: 6, kind: "organization" })).toEqual({ outcome: "limit" });
    expect(await create(second)).toMatchObject({ outcome: "created" });
    const tokenId = made.outcome === "created" ? made.token.tokenId : "";
    await accounts.deleteToken({ ...platform.deed(), organizationId, tokenId });
    expect(await create(bob)).toMatchObject({ outcome: "created" });
  });

  it("takes monitoring tokens while the operator has enabled them", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId } = await platform.setUp();
    const enable = (monitoringEnabled: boolean) =>
      accounts.updateOrganization({ ...platform.deed(), organizationId, monitoringEnabled });
    await enable(true);
    const fields = { access: MONITORING_ACCESS };
    const { token, secret } = await platform.token(organizationId, { fields });
    const find = () => accounts.findCredential({ digests: [secret.digest], nowMs });
    expect(await find()).toMatchObject({ monitoringEnabled: true, access: MONITORING_ACCESS });
    await enable(false);
    expect(await find()).toMatchObject({ monitoringEnabled: false });
    const update = { organizationId, tokenId: token.tokenId, fields };
    expect(await accounts.updateToken({ ...platform.deed(), ...update })).toEqual({
      outcome: "monitoring_disabled",
    });
    const rename = { ...update, fields: { name: "metrics" } };
    expect(await accounts.updateToken({ ...platform.deed(), ...rename })).toMatchObject({
      outcome: "updated",
    });
  });

  it("shows organization tokens to everybody, personal ones to their owner", async (platform) => {
    const { accounts } = platform;
    const { organizationId, userId } = await platform.setUp();
    const bob = await platform.join(organizationId, "bob@example.com");
    const tokens = [
      await platform.token(organizationId, { fields: { name: "shared" }, userId }),
      await platform.token(organizationId, {
        fields: { name: "of ada" },
        kind: "personal",
        userId,
      }),
      await platform.token(organizationId, {
        fields: { name: "of bob" },
        kind: "personal",
        userId: bob,
      }),
    ];
    expect(tokens).toHaveLength(3);
    const names = async (viewerId?: string, kind?: "personal" | "organization") => {
      const query = { organizationId, viewerId, limit: 10, ...(kind && { kind }) };
      return (await accounts.listTokens(query)).items.map(({ name }) => name);
    };
    expect(await names(userId)).toEqual(["of ada", "shared"]);
    expect(await names(bob)).toEqual(["of bob", "shared"]);
    expect(await names()).toEqual(["shared"]);
    expect(await names(bob, "personal")).toEqual(["of bob"]);
    expect(await names(bob, "organization")).toEqual(["shared"]);
    expect(await names(undefined, "personal")).toEqual([]);
  });

  it("lists tokens newest first, page by page, each once", async (platform) => {
    const { accounts } = platform;
    const { organizationId, userId } = await platform.setUp();
    const bob = await platform.join(organizationId, "bob@example.com");
    for (const name of ["1", "2", "3", "4", "5"]) {
      await platform.token(organizationId, { fields: { name } });
      await platform.token(organizationId, { kind: "personal", userId: bob });
    }
    const pages = await allPages((after) =>
      accounts.listTokens({ organizationId, viewerId: userId, limit: 2, ...(after && { after }) }),
    );
    expect(pages.map((page) => page.map(({ name }) => name))).toEqual([
      ["5", "4"],
      ["3", "2"],
      ["1"],
    ]);
  });

  it("updates the fields that are given, counts versions, and notices conflicts", async (platform) => {
    const { accounts } = platform;
    const { organizationId } = await platform.setUp();
    await platform.deployment(organizationId, "summarizer");
    await platform.deployment(organizationId, "translator");
    const fields = { access: ENDPOINT_ACCESS, deployments: ["summarizer"], notBeforeMs: 5_000 };
    const { token } = await platform.token(organizationId, { fields });
    const { tokenId } = token;
    const update = (change: TokenUpdate, version?: number) => {
      const key = { ...platform.deed(), organizationId, tokenId };
      return accounts.updateToken({ ...key, fields: change, ...(version && { version }) });
    };
    platform.nowMs += 1_000;
    expect(
      await platform.changesOf(() => update({ description: "for tests", name: undefined }, 1)),
    ).toEqual([`token ${tokenId}`]);
    const once = { ...token, description: "for tests", version: 2, updatedAtMs: platform.nowMs };
    expect(await accounts.getToken({ organizationId, tokenId })).toEqual(once);
    const [newest] = await platform.audit(organizationId);
    expect(newest).toMatchObject({ action: "token.update", details: { description: "for tests" } });
    expect(Object.keys(newest?.details ?? {})).toEqual(["description"]);

    expect(await update({ name: "late" }, 1)).toEqual({ outcome: "version_conflict" });
    expect(await update({ deployments: ["translator", "nothing"] })).toEqual({
      outcome: "unknown_deployments",
      names: ["nothing"],
    });
    expect(await accounts.getToken({ organizationId, tokenId })).toEqual(once);

    const answer = await update({ deployments: ["translator"], allowedNetworks: ["::1/128"] }, 2);
    expect(answer).toMatchObject({
      outcome: "updated",
      token: { deployments: [{ name: "translator" }], notBeforeMs: 5_000, version: 3 },
    });
    expect(await update({ notBeforeMs: null })).toMatchObject({
      token: { notBeforeMs: undefined, allowedNetworks: ["::1/128"] },
    });
    const none = { ...platform.deed(), organizationId, tokenId: "none", fields: {} };
    expect(await accounts.updateToken(none)).toEqual({ outcome: "not_found" });
    const foreign = { ...platform.deed(), organizationId: "other", tokenId, fields: {} };
    expect(await accounts.updateToken(foreign)).toEqual({ outcome: "not_found" });
  });

  it("deletes a token with its values, in its own organization only", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId } = await platform.setUp();
    const { token, secret } = await platform.token(organizationId);
    const { tokenId } = token;
    const remove = (from: string) =>
      accounts.deleteToken({ ...platform.deed(), organizationId: from, tokenId });
    const find = () => accounts.findCredential({ digests: [secret.digest], nowMs });
    expect(await remove("other")).toBe(false);
    expect(await find()).toBeDefined();
    expect(await platform.changesOf(() => remove(organizationId))).toEqual([`token ${tokenId}`]);
    expect(await find()).toBeUndefined();
    expect(await remove(organizationId)).toBe(false);
    const [newest] = await platform.audit(organizationId);
    expect(newest).toMatchObject({ action: "token.delete", subjectId: tokenId, subject: "laptop" });
  });

  it("notes uses in batches, never moving a time backwards", async (platform) => {
    const { accounts } = platform;
    const { organizationId } = await platform.setUp();
    const first = (await platform.token(organizationId)).token.tokenId;
    const second = (await platform.token(organizationId)).token.tokenId;
    const use = (tokenId: string, timeMs: number, address: string) => ({
      organizationId,
      tokenId,
      timeMs,
      address,
    });
    await accounts.recordUses({
      uses: [use(second, 10, "a"), use(first, 30, "c"), use(first, 20, "b"), use("gone", 9, "x")],
    });
    await accounts.recordUses({ uses: [use(first, 25, "late"), use(second, 11, "d")] });
    await accounts.recordUses({ uses: [] });
    const uses = [first, second].map((tokenId) => accounts.getToken({ organizationId, tokenId }));
    expect(await Promise.all(uses)).toMatchObject([
      { lastUsedAtMs: 30, lastUsedAddress: "c", version: 1 },
      { lastUsedAtMs: 11, lastUsedAddress: "d", version: 1 },
    ]);
  });

  it("keeps hundreds of deployments of a token, and notes as many uses", async (platform) => {
    const { accounts } = platform;
    const { organizationId } = await platform.setUp();
    const names = Array.from({ length: 230 }, (_, index) => `d${String(index).padStart(3, "0")}`);
    for (const name of names) {
      const ids = { organizationId, deploymentId: platform.newId("deployment") };
      const terms = { name, authorization: true, limit: 1_000 };
      await accounts.createDeployment({ ...platform.deed(), ...ids, ...terms });
    }
    const fields = { access: ENDPOINT_ACCESS, deployments: [...names].reverse() };
    const { token } = await platform.token(organizationId, { fields });
    expect(token.deployments.map(({ name }) => name)).toEqual(names);
    const uses = Array.from({ length: 120 }, (_, index) => ({
      organizationId,
      tokenId: index === 60 ? token.tokenId : `gone-${index}`,
      timeMs: 1_000 + index,
      address: "::1",
    }));
    await accounts.recordUses({ uses });
    expect(await accounts.getToken(token)).toMatchObject({ lastUsedAtMs: 1_060 });
  });
}
