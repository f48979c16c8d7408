import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTokenValue } from "../../src/auth/token-format.ts";
import { NO_ACCESS } from "../../src/auth/token-rules.ts";
import { threadTimer } from "../thread-time.ts";
import {
  ACME,
  ADA,
  addMember,
  type Clock,
  createToken,
  DATABASES,
  type Databases,
  DEVELOPER,
  deed,
  Node,
  newClock,
  openKeys,
  refusal,
  setUp,
  signIn,
} from "./platform.ts";
import { shown } from "./shown.ts";

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

  /** A node on a clock that stands still, but whose feed is told to be fresh. */
  async function startStill() {
    const clock = newClock();
    const node = await start(clock);
    return {
      node,
      clock,
      async pass(ms: number): Promise<void> {
        clock.pass(ms);
        await node.changes.catchUp();
      },
    };
  }

  describe("a token", () => {
    it("is who it says, from one query, and then at once", async () => {
      await using node = await start();
      const fields = {
        access: {
          ...NO_ACCESS,
          developerOperations: true,
          protectedEndpoint: true,
        },
        allDeployments: true,
        allowedNetworks: ["192.0.2.0/24"],
      };
      const { value, tokenId } = await createToken(node.accounts, node.keys, { fields });
      const principal = await node.bearer(value);
      expect(principal).toEqual({
        kind: "token",
        tokenId,
        generation: 1,
        tokenKind: "personal",
        tokenName: "laptop",
        organizationId: ACME,
        organization: "acme",
        ...fields,
        deployments: [],
        expiresAtMs: DEVELOPER.expiresAtMs,
        user: { userId: ADA, email: "ada@example.com", role: "admin" },
      });
      expect(node.bearer(value)).toBe(principal);
      expect(node.asked.credentials).toBe(1);
    });

    it("costs one query however many ask at once", async () => {
      await using node = await start();
      const { value } = await createToken(node.accounts, node.keys);
      const principals = await Promise.all(Array.from({ length: 500 }, () => node.bearer(value)));
      expect(new Set(principals).size).toBe(1);
      expect(node.asked.credentials).toBe(1);
    });

    it("is asked for again after 30 s", async () => {
      const { node, pass } = await startStill();
      await using _node = node;
      const { value } = await createToken(node.accounts, node.keys);
      await node.bearer(value);
      await pass(29_999);
      await node.bearer(value);
      expect(node.asked.credentials).toBe(1);
      await pass(1);
      await node.bearer(value);
      expect(node.asked.credentials).toBe(2);
    });

    it("is refused when it has expired or not begun, without another query", async () => {
      const { node, clock } = await startStill();
      await using _node = node;
      const fields = { expiresAtMs: clock.nowMs + 1_000, notBeforeMs: clock.nowMs + 500 };
      const { value } = await createToken(node.accounts, node.keys, { fields });
      const early = await refusal(() => node.bearer(value));
      clock.pass(500);
      expect(await node.bearer(value)).toMatchObject({ kind: "token" });
      clock.pass(500);
      const late = await refusal(() => node.bearer(value));
      expect([early, late]).toMatchObject([refused, refused]);
      expect(node.asked.credentials).toBe(1);
    });

    it("is refused from another network, and still good from its own", async () => {
      await using node = await start();
      const fields = { allowedNetworks: ["198.51.100.0/24", "2001:db8::/32"] };
      const { value } = await createToken(node.accounts, node.keys, { fields });
      expect(await node.bearer(value, "::ffff:198.51.100.7")).toMatchObject({ kind: "token" });
      for (const address of ["192.0.2.1", "2001:db9::1", "", "unknown"]) {
        expect(await refusal(() => node.bearer(value, address))).toMatchObject(refused);
      }
      expect(await node.bearer(value, "2001:db8::1")).toMatchObject({ kind: "token" });
    });

    it("is noted as used again from another address, or half a minute later", async () => {
      const { node, clock } = await startStill();
      await using _node = node;
      const { value, tokenId } = await createToken(node.accounts, node.keys);
      await node.bearer(value, "192.0.2.7");
      const usedAtMs = clock.nowMs;
      clock.pass(20_000);
      node.bearer(value, "192.0.2.7");
      await node.uses.flush();
      const read = () => node.accounts.getToken({ organizationId: ACME, tokenId });
      expect(await read()).toMatchObject({ lastUsedAtMs: usedAtMs });
      clock.pass(10_000);
      await node.bearer(value, "192.0.2.7");
      await node.uses.flush();
      expect(await read()).toMatchObject({ lastUsedAtMs: clock.nowMs });
    });

    it("is noted as used", async () => {
      const { node, clock } = await startStill();
      await using _node = node;
      const { value, tokenId } = await createToken(node.accounts, node.keys);
      await node.bearer(value, "192.0.2.7");
      clock.pass(1_000);
      node.bearer(value, "192.0.2.8");
      await node.uses.flush();
      expect(await node.accounts.getToken({ organizationId: ACME, tokenId })).toMatchObject({
        lastUsedAtMs: clock.nowMs,
        lastUsedAddress: "192.0.2.8",
      });
      expect(node.asked.uses).toBe(1);
    });
  });

  describe("what is no token", () => {
    it.each(shown("", "Bearer", "Bearer ", "Basic dTpw", createTokenValue("p")))(
      "has brought none, and is told so without a query: %s",
      async (_shown, authorization) => {
        await using node = await start();
        const found = await refusal(() =>
          node.verifier.authenticate({ authorization, cookie: undefined, address: "192.0.2.1" }),
        );
        expect(found).toMatchObject({ reason: "TOKEN_MISSING" });
        expect(found?.rawMessage).not.toContain("tsrp");
        expect(node.asked.credentials).toBe(0);
      },
    );

    it.each(
      shown(
        "Bearer x",
        `Bearer ghp_${"a".repeat(36)}`,
        `Bearer tsrp_${"a".repeat(36)}`,
        `Bearer ${createTokenValue("p").slice(0, -1)}`,
        `Bearer ${createTokenValue("p")} ${createTokenValue("o")}`,
        `Bearer ${"x".repeat(10_000_000)}`,
        `Bearer${" ".repeat(10_000_000)}`,
      ),
    )("is refused without a query: %s", async (_shown, authorization) => {
      await using node = await start();
      const words = await refusal(() => node.bearer("other"));
      const tookMs = threadTimer();
      const found = await refusal(() =>
        node.verifier.authenticate({ authorization, cookie: undefined, address: "192.0.2.1" }),
      );
      expect(tookMs()).toBeLessThan(200);
      expect(found).toMatchObject({ ...refused, rawMessage: words?.rawMessage });
      expect(node.asked.credentials).toBe(0);
    });

    it("is refused in the same words as a token that nobody has, which are not its own", async () => {
      await using node = await start();
      const value = createTokenValue("o");
      const [unknown, broken] = [
        await refusal(() => node.bearer(value)),
        await refusal(() => node.bearer("x")),
      ];
      expect(unknown?.rawMessage).toBe(broken?.rawMessage);
      expect(inspect(unknown, { depth: 8 })).not.toContain(value.slice(5));
    });
  });

  describe("a token that nobody has", () => {
    it("is asked for once in 5 s", async () => {
      const { node, pass } = await startStill();
      await using _node = node;
      const value = createTokenValue("p");
      for (let index = 0; index < 100; index += 1) {
        expect(await refusal(() => node.bearer(value))).toMatchObject(refused);
      }
      expect(node.asked.credentials).toBe(1);
      await pass(5_000);
      expect(await refusal(() => node.bearer(value))).toMatchObject(refused);
      expect(node.asked.credentials).toBe(2);
    });

    it("is refused before the database is asked when too many came from the address", async () => {
      const { node, pass } = await startStill();
      await using _node = node;
      const good = await createToken(node.accounts, node.keys);
      const other = await createToken(node.accounts, node.keys);
      await node.bearer(good.value);
      for (let index = 0; index < 20; index += 1) {
        expect(await refusal(() => node.bearer(createTokenValue("p")))).toMatchObject(refused);
      }
      const asked = node.asked.credentials;
      expect(await refusal(() => node.bearer(createTokenValue("p")))).toMatchObject({
        reason: "RATE_LIMITED",
        retryAfterMs: 3_000,
      });
      expect(await refusal(() => node.bearer(other.value))).toMatchObject({
        reason: "RATE_LIMITED",
      });
      expect(node.bearer(good.value)).toMatchObject({ kind: "token" });
      expect(node.asked.credentials).toBe(asked);
      expect(await node.bearer(other.value, "192.0.2.2")).toMatchObject({ kind: "token" });
      await pass(3_000);
      expect(await refusal(() => node.bearer(createTokenValue("p")))).toMatchObject(refused);
    });
  });

  describe("a session", () => {
    it("is its person with their memberships, from one query, until it ends", async () => {
      await using node = await start();
      const { value, sessionId } = await signIn(node.accounts);
      const principal = await node.cookie(value);
      expect(principal).toMatchObject({
        kind: "session",
        sessionId,
        userId: ADA,
        email: "ada@example.com",
        memberships: [{ organizationId: ACME, organization: "acme", role: "admin" }],
      });
      expect(node.cookie(value)).toBe(principal);
      expect(node.asked.sessions).toBe(1);
      await node.accounts.closeSession({ ...deed(), sessionId });
      expect(await node.cookie(value)).toEqual({ kind: "anonymous", signedOut: true });
    });

    it("is nobody's after its time", async () => {
      const { node, clock } = await startStill();
      await using _node = node;
      const { value } = await signIn(node.accounts);
      expect(await node.cookie(value)).toMatchObject({ kind: "session" });
      clock.nowMs += 15 * 24 * 3_600_000;
      expect(await node.cookie(value)).toEqual({ kind: "anonymous", signedOut: true });
    });

    it("knows at once that its person has confirmed their password", async () => {
      await using node = await start();
      const { value, sessionId } = await signIn(node.accounts);
      await node.cookie(value);
      const nowMs = Date.now() + 60_000;
      await node.accounts.confirmSession({ sessionId, nowMs });
      expect(await node.cookie(value)).toMatchObject({ authenticatedAtMs: nowMs });
    });

    it("ends when its person gets another password, but for the one that set it", async () => {
      await using node = await start();
      const [mine, other] = [await signIn(node.accounts), await signIn(node.accounts)];
      await Promise.all([node.cookie(mine.value), node.cookie(other.value)]);
      await node.accounts.setPassword({
        ...deed(),
        userId: ADA,
        passwordHash: "other",
        exceptSessionId: mine.sessionId,
      });
      expect(await node.cookie(mine.value)).toMatchObject({ kind: "session" });
      expect(await node.cookie(other.value)).toEqual({ kind: "anonymous", signedOut: true });
    });

    it("records its use, at most every five minutes", async () => {
      const clock = newClock();
      const { value, sessionId } = await signIn(databases.one.accounts);
      const recorded = async () => {
        const { items } = await databases.one.accounts.listSessions({
          userId: ADA,
          nowMs: clock.nowMs,
          limit: 1_000,
        });
        return items.find((one) => one.sessionId === sessionId);
      };
      /** A node that begins without a cache; its end waits for what it writes. */
      const useFrom = async (address: string) => {
        await using node = await start(clock);
        expect(await node.cookie(value, address)).toMatchObject({ sessionId });
      };
      expect(await recorded()).toMatchObject({ usedAtMs: undefined });
      const firstMs = clock.nowMs;
      await useFrom("192.0.2.1");
      expect(await recorded()).toMatchObject({ usedAtMs: firstMs, address: "192.0.2.1" });
      clock.pass(299_999);
      await useFrom("192.0.2.2");
      expect(await recorded()).toMatchObject({ usedAtMs: firstMs, address: "192.0.2.1" });
      clock.pass(1);
      await useFrom("192.0.2.3");
      expect(await recorded()).toMatchObject({ usedAtMs: clock.nowMs, address: "192.0.2.3" });
    });

    it("loses a membership that has ended", async () => {
      await using node = await start();
      const userId = await addMember(node.accounts, "joe@example.com");
      const { value } = await signIn(node.accounts, userId);
      expect(await node.cookie(value)).toMatchObject({ memberships: [{ role: "member" }] });
      await node.accounts.removeMember({ ...deed(), organizationId: ACME, userId, left: false });
      expect(await node.cookie(value)).toMatchObject({ kind: "session", memberships: [] });
    });

    it("that nobody has is nobody", async () => {
      await using node = await start();
      for (const cookie of ["x", "a".repeat(43), "a".repeat(43)]) {
        expect(await node.cookie(cookie)).toMatchObject({ kind: "anonymous" });
      }
      expect(node.asked.sessions).toBe(1);
    });

    it("does not count beside a token, good or bad", async () => {
      await using node = await start();
      const { value } = await signIn(node.accounts);
      const token = await createToken(node.accounts, node.keys);
      const both = (authorization: string) => ({
        authorization,
        cookie: `tessera_session=${value}`,
        address: "192.0.2.1",
      });
      expect(await node.verifier.authenticate(both(`Bearer ${token.value}`))).toMatchObject({
        kind: "token",
      });
      expect(await refusal(() => node.verifier.authenticate(both("Bearer x")))).toMatchObject(
        refused,
      );
    });
  });

  it("knows nobody who shows nothing", async () => {
    await using node = await start();
    const nothing = { authorization: undefined, cookie: "a=b", address: "192.0.2.1" };
    expect(node.verifier.authenticate(nothing)).toEqual({ kind: "anonymous" });
  });
});
