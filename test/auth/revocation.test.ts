/** What a node has remembered of a token ends when what it rests on changes. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { rotateKeys } from "../../src/auth/keys-file.ts";
import type { Principal } from "../../src/auth/principal.ts";
import { createTokenValue } from "../../src/auth/token-format.ts";
import { NO_ACCESS } from "../../src/auth/token-rules.ts";
import {
  ACME,
  addMember,
  type Clock,
  createToken,
  DATABASES,
  type Databases,
  deed,
  Node,
  newClock,
  openKeys,
  refusal,
  secretOf,
  setUp,
} from "./platform.ts";

const refused = { reason: "TOKEN_INVALID" } as const;

describe.each(Object.entries(DATABASES))("on %s", (_name, open) => {
  let databases: Databases;
  let platform: Awaited<ReturnType<typeof setUp>>;

  beforeAll(async () => {
    databases = await open();
    platform = await setUp(databases.one.accounts);
  });
  afterAll(async () => {
    platform[Symbol.dispose]();
    await databases[Symbol.asyncDispose]();
  });

  const start = (clock?: Clock): Promise<Node> =>
    Node.start(databases.one.accounts, {
      keys: openKeys(platform.keysPath),
      ...(clock && { clock }),
    });

  describe("a token stops at once", () => {
    it.each<[string, (node: Node, tokenId: string) => Promise<unknown>]>([
      [
        "when it is deleted",
        ({ accounts }, tokenId) =>
          accounts.deleteToken({ ...deed(), organizationId: ACME, tokenId }),
      ],
      [
        "when it gets another value",
        ({ accounts, keys }, tokenId) =>
          accounts.rotateToken({
            ...deed(),
            organizationId: ACME,
            tokenId,
            secret: secretOf(createTokenValue("p"), keys),
            graceMs: 0,
          }),
      ],
      [
        "when its networks change",
        ({ accounts }, tokenId) =>
          accounts.updateToken({
            ...deed(),
            organizationId: ACME,
            tokenId,
            fields: { allowedNetworks: ["10.0.0.0/8"] },
          }),
      ],
    ])("%s", async (_what, deedOf) => {
      await using node = await start();
      const { value, tokenId } = await createToken(node.accounts, node.keys);
      await node.bearer(value);
      await deedOf(node, tokenId);
      expect(await refusal(() => node.bearer(value))).toMatchObject(refused);
    });

    it("when its person leaves, and does not revive when they return; one of the organization lives on", async () => {
      await using node = await start();
      const userId = await addMember(node.accounts, "bob@example.com");
      const theirs = await createToken(node.accounts, node.keys, { userId });
      const ours = await createToken(node.accounts, node.keys, { kind: "organization" });
      expect(await node.bearer(theirs.value)).toMatchObject({ user: { role: "member" } });
      await node.bearer(ours.value);
      await node.accounts.removeMember({ ...deed(), organizationId: ACME, userId, left: true });
      expect(await refusal(() => node.bearer(theirs.value))).toMatchObject(refused);
      expect(await node.bearer(ours.value)).toMatchObject({ user: undefined });
      const invitationId = userId;
      await node.accounts.invite({
        ...deed(),
        organizationId: ACME,
        invitationId,
        digest: invitationId,
        email: "bob@example.com",
        role: "member",
        expiresAtMs: Date.now() + 60_000,
        limit: 10,
      });
      const joined = await node.accounts.acceptInvitation({ ...deed(), invitationId, userId });
      expect(joined).toEqual({ outcome: "joined" });
      expect(await refusal(() => node.bearer(theirs.value))).toMatchObject(refused);
    });

    it("when monitoring is switched off, if it is for that", async () => {
      await using node = await start();
      const monitoring = (monitoringEnabled: boolean) =>
        node.accounts.updateOrganization({ ...deed(), organizationId: ACME, monitoringEnabled });
      await monitoring(true);
      const access = {
        ...NO_ACCESS,
        monitoring: true,
      };
      const token = { kind: "organization", fields: { access } } as const;
      const { value } = await createToken(node.accounts, node.keys, token);
      expect(await node.bearer(value)).toMatchObject({ access });
      await monitoring(false);
      expect(await refusal(() => node.bearer(value))).toMatchObject(refused);
      await monitoring(true);
      expect(await node.bearer(value)).toMatchObject({ access });
    });
  });

  it("has the role that its person has now, and loses a deployment that is deleted", async () => {
    await using node = await start();
    const { accounts, keys } = node;
    const userId = await addMember(accounts, "eve@example.com");
    const deployment = { organizationId: ACME, name: "summarizer" };
    await accounts.createDeployment({
      ...deed(),
      ...deployment,
      deploymentId: "summarizer-id",
      authorization: true,
      limit: 10,
    });
    const access = {
      ...NO_ACCESS,
      developerOperations: true,
      protectedEndpoint: true,
    };
    const fields = { access, deployments: ["summarizer"] };
    const { value } = await createToken(accounts, keys, { userId, fields });
    expect(await node.bearer(value)).toMatchObject({
      user: { role: "member" },
      deployments: [{ deploymentId: "summarizer-id", name: "summarizer" }],
    });
    await accounts.changeRole({ ...deed(), organizationId: ACME, userId, role: "admin" });
    expect(await node.bearer(value)).toMatchObject({ user: { role: "admin" } });
    await accounts.deleteDeployment({ ...deed(), ...deployment });
    expect(await node.bearer(value)).toMatchObject({ deployments: [] });
  });

  it("knows the value before a rotation until its grace is over", async () => {
    const clock = newClock();
    await using node = await start(clock);
    const { value, tokenId } = await createToken(node.accounts, node.keys);
    const next = createTokenValue("p");
    await node.accounts.rotateToken({
      ...deed(clock.nowMs),
      organizationId: ACME,
      tokenId,
      secret: secretOf(next, node.keys),
      graceMs: 1_000,
    });
    expect(await node.bearer(value)).toMatchObject({ tokenId });
    expect(await node.bearer(next)).toMatchObject({ tokenId });
    clock.pass(1_000);
    expect(await refusal(() => node.bearer(value))).toMatchObject(refused);
    expect(await node.bearer(next)).toMatchObject({ tokenId });
  });

  it("goes on with tokens of before a rotation of the keys, and digests them anew", async () => {
    await using node = await start();
    const { value } = await createToken(node.accounts, node.keys);
    const before = node.keys.digest(value);
    rotateKeys(platform.keysPath);
    await node.accounts.announceKeys(deed());
    expect(node.keys.digest(value).keyId).not.toBe(before.keyId);
    const principal = await node.bearer(value);
    await node.verifier[Symbol.asyncDispose]();
    const find = (digest: string) =>
      node.accounts.findCredential({ digests: [digest], nowMs: Date.now() });
    expect(await find(before.digest)).toBeUndefined();
    expect(await find(node.keys.digest(value).digest)).toMatchObject({
      tokenId: (principal as Extract<Principal, { kind: "token" }>).tokenId,
      digestKeyId: node.keys.digest(value).keyId,
    });
    expect(await node.bearer(value)).toMatchObject({ kind: "token" });
  });
});
