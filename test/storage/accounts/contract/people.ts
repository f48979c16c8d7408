import { expect } from "vitest";
import type { It } from "../contract.ts";

export function peopleContract(it: It): void {
  it("finds people by e-mail address and by id, and nobody else", async (platform) => {
    const { accounts } = platform;
    const { userId } = await platform.setUp();
    const user = {
      userId,
      email: "ada@example.com",
      displayName: "Ada",
      passwordHash: "hash of a password",
      emailVerified: true,
      operator: true,
      createdAtMs: platform.nowMs,
    };
    expect(await accounts.findUser({ email: "ada@example.com" })).toEqual(user);
    expect(await accounts.findUser({ userId })).toEqual(user);
    expect(await accounts.findUser({ email: "eve@example.com" })).toBeUndefined();
    expect(await accounts.findUser({ email: "ada@example.com\0" })).toBeUndefined();
  });

  it("knows people by what a provider calls them, and keeps the first link", async (platform) => {
    const { accounts } = platform;
    const { organizationId, userId } = await platform.setUp();
    const other = await platform.join(organizationId, "bob@example.com");
    const identity = { issuer: "https://id.example.com", subject: "1234" };
    expect(await accounts.findIdentity(identity)).toBeUndefined();
    await accounts.linkIdentity({ ...platform.deed("ada@example.com"), ...identity, userId });
    await accounts.linkIdentity({ ...platform.deed(), ...identity, userId: other });
    expect(await accounts.findIdentity(identity)).toMatchObject({ userId });
    const links = (await platform.audit(organizationId)).filter(
      ({ action }) => action === "identity.link",
    );
    expect(links).toMatchObject([{ subjectId: userId, details: { issuer: identity.issuer } }]);
  });

  it("opens and closes sessions, which end by themselves", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId, userId } = await platform.setUp();
    const session = platform.session();
    await accounts.openSession({ ...platform.deed("ada@example.com"), userId, session });
    const find = (atMs: number) => accounts.findSession({ digest: session.digest, nowMs: atMs });
    expect(await find(nowMs)).toMatchObject({ sessionId: session.sessionId, userId });
    expect(await find(session.expiresAtMs - 1)).toBeDefined();
    expect(await find(session.expiresAtMs)).toBeUndefined();
    const { sessionId } = session;
    const findOf = (atMs: number) => accounts.findSessionOf({ sessionId, nowMs: atMs });
    expect(await findOf(nowMs)).toEqual(await find(nowMs));
    expect(await findOf(session.expiresAtMs)).toBeUndefined();
    const close = { ...platform.deed("ada@example.com"), sessionId: session.sessionId };
    expect(await platform.changesOf(() => accounts.closeSession(close))).toEqual([
      `session ${session.sessionId}`,
    ]);
    expect([await find(nowMs), await findOf(nowMs)]).toEqual([undefined, undefined]);
    await accounts.closeSession({ ...platform.deed(), sessionId: session.sessionId });
    const actions = (await platform.audit(organizationId)).map(({ action }) => action);
    expect(actions).toEqual(["sign_out", "sign_in", "organization.create"]);
  });

  it("knows the operators: whoever set the platform up, and those who were made one", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId, userId } = await platform.setUp();
    const bob = await platform.join(organizationId, "bob@example.com");
    const session = platform.session();
    await accounts.openSession({ ...platform.deed("bob@example.com"), userId: bob, session });
    const emails = async () => (await accounts.listOperators()).map(({ email }) => email);
    const isOperator = async () =>
      (await accounts.findSession({ digest: session.digest, nowMs }))?.operator;
    expect(await emails()).toEqual(["ada@example.com"]);
    expect(await isOperator()).toBe(false);
    const grant = { ...platform.deed(), userId: bob, operator: true };
    expect(await platform.changesOf(() => accounts.setOperator(grant))).toEqual([`user ${bob}`]);
    expect(await emails()).toEqual(["ada@example.com", "bob@example.com"]);
    expect(await isOperator()).toBe(true);
    expect(await accounts.setOperator({ ...platform.deed(), userId, operator: false })).toBe(true);
    expect(await emails()).toEqual(["bob@example.com"]);
    const nobody = { ...platform.deed(), userId: "nobody", operator: true };
    expect(await accounts.setOperator(nobody)).toBe(false);
    const audit = await platform.audit(organizationId);
    expect(audit.slice(0, 2)).toMatchObject([
      { action: "operator.revoke", subject: "ada@example.com" },
      { action: "operator.grant", subject: "bob@example.com" },
    ]);
  });

  it("gives a person another name, in their sessions and all organizations", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId, userId } = await platform.setUp();
    const other = await platform.join(organizationId, "bob@example.com");
    const session = platform.session();
    await accounts.openSession({ ...platform.deed("ada@example.com"), userId, session });
    const change = (id: string) =>
      accounts.changeDisplayName({
        ...platform.deed("ada@example.com"),
        userId: id,
        displayName: "Ada, \u05e2\u05d3\u05d4 <b>",
      });
    expect(await platform.changesOf(() => change(userId))).toEqual([`user ${userId}`]);
    const named = { displayName: "Ada, \u05e2\u05d3\u05d4 <b>" };
    expect(await accounts.findUser({ userId })).toMatchObject(named);
    expect(await accounts.findSession({ digest: session.digest, nowMs })).toMatchObject(named);
    const { items } = await accounts.listMembers({ organizationId, limit: 10 });
    expect(items).toMatchObject([{ userId, ...named }, { userId: other }]);
    const [event] = await platform.audit(organizationId);
    expect(event).toMatchObject({
      action: "display_name.change",
      actor: "ada@example.com",
      subjectId: userId,
      subject: "ada@example.com",
      details: { display_name: named.displayName },
    });
    expect(await platform.changesOf(() => change("nobody"))).toEqual([]);
    expect(await change("nobody")).toBe(false);
  });

  it("notes when the person of a session proved to be there, never earlier than before", async (platform) => {
    const { accounts, nowMs } = platform;
    const { userId } = await platform.setUp();
    const { sessionId, ...session } = platform.session();
    await accounts.openSession({ ...platform.deed(), userId, session: { sessionId, ...session } });
    const confirm = (atMs: number) => accounts.confirmSession({ sessionId, nowMs: atMs });
    expect(await platform.changesOf(() => confirm(nowMs + 5_000))).toEqual([
      `session ${sessionId}`,
    ]);
    await confirm(nowMs + 1_000);
    expect(await accounts.findSession({ digest: session.digest, nowMs })).toMatchObject({
      createdAtMs: nowMs,
      authenticatedAtMs: nowMs + 5_000,
    });
  });

  it("ends all other sessions of a person with a new password", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId, userId } = await platform.setUp();
    const other = await platform.join(organizationId, "bob@example.com");
    const [kept, ended, foreign] = [platform.session(), platform.session(), platform.session()];
    await accounts.openSession({ ...platform.deed(), userId, session: kept });
    await accounts.openSession({ ...platform.deed(), userId, session: ended });
    await accounts.openSession({ ...platform.deed(), userId: other, session: foreign });
    const change = { userId, passwordHash: "new hash", exceptSessionId: kept.sessionId };
    expect(
      await platform.changesOf(() => accounts.setPassword({ ...platform.deed(), ...change })),
    ).toEqual([`user ${userId}`]);
    const found = [kept, ended, foreign].map(({ digest }) =>
      accounts.findSession({ digest, nowMs }),
    );
    expect((await Promise.all(found)).map((session) => session !== undefined)).toEqual([
      true,
      false,
      true,
    ]);
    expect(await accounts.findUser({ userId })).toMatchObject({ passwordHash: "new hash" });
    expect(
      await accounts.setPassword({ ...platform.deed(), userId: "nobody", passwordHash: "x" }),
    ).toBeUndefined();
  });

  it("records failed sign-ins in every organization of the person", async (platform) => {
    const { accounts } = platform;
    const { organizationId, userId } = await platform.setUp();
    const second = platform.newId("organization");
    const organization = { organizationId: second, name: "globex", displayName: "", userId };
    await accounts.createOrganization({ ...platform.deed("ada@example.com"), ...organization });
    await accounts.recordFailedSignIn({
      ...platform.deed("ada@example.com"),
      email: "ada@example.com",
    });
    await accounts.recordFailedSignIn({ ...platform.deed("eve"), email: "eve@example.com" });
    for (const id of [organizationId, second]) {
      const [newest] = await platform.audit(id);
      expect(newest).toMatchObject({
        action: "sign_in.failed",
        address: "203.0.113.9",
        subject: "ada@example.com",
        timeMs: platform.nowMs,
      });
    }
  });
}
