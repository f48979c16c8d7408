import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Browser, CLIENT, TestProvider } from "./oidc.ts";
import { Folder, type Platform, start } from "./platform.ts";

describe("sign-in by OpenID Connect", () => {
  let folder: Folder;
  let provider: TestProvider;
  let platform: Platform;
  let admin: Record<string, string>;
  let browser: Browser;

  const startUrl = (next = "/account") =>
    `${platform.started.url}/auth/oidc/start?${new URLSearchParams({ next })}`;
  const me = async (visitor = browser) =>
    (await platform.call("/api/v1/me", undefined, visitor.cookies("localhost"))).json;
  const pathOf = (url: string): string => url.slice(new URL(url).origin.length);
  const invite = async (email: string): Promise<void> => {
    const answer = await platform.call("/api/v1/members:invite", { email }, admin);
    expect(answer.status).toBe(200);
  };

  beforeAll(async () => {
    folder = new Folder();
    provider = await TestProvider.listen();
    platform = await start(folder, {
      env: {
        ...provider.settings,
        TESSERA_OIDC_NAME: "Example Corp",
      },
    });
    provider.serve(`${platform.started.url}/auth/oidc/callback`);
    admin = await platform.setUp();
  });
  beforeEach(() => {
    browser = new Browser();
    provider.accounts.set("ada", { email: "Ada@Example.com", email_verified: true });
  });
  afterAll(async () => {
    await platform[Symbol.asyncDispose]();
    await provider[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  it("is offered on the sign-in page", async () => {
    expect((await platform.call("/auth/methods")).json).toEqual({
      needs_setup: false,
      password: true,
      oidc: { name: "Example Corp" },
    });
  });

  it("finds a person by the e-mail address that the provider vouches for", async () => {
    expect(pathOf(await browser.signIn(startUrl(), "ada"))).toBe("/account");
    expect(await me()).toMatchObject({ kind: "session", email: "ada@example.com" });
  });

  it("knows the person again by the provider's own name for them, whatever their address is then", async () => {
    await browser.signIn(startUrl(), "ada");
    provider.accounts.set("ada", { email: "somebody@else.example", email_verified: false });
    const other = new Browser();
    expect(pathOf(await other.signIn(startUrl(), "ada"))).toBe("/account");
    expect(await me(other)).toMatchObject({ email: "ada@example.com" });
  });

  it("lets in whom an invitation is for, and remembers them", async () => {
    await invite("grace@example.com");
    provider.accounts.set("grace", {
      email: "grace@example.com",
      email_verified: true,
      name: "Grace",
    });
    await browser.signIn(startUrl(), "grace");
    expect(await me()).toMatchObject({
      email: "grace@example.com",
      organizations: [{ name: "acme", role: "member" }],
    });
    expect((await platform.call("/api/v1/members", undefined, admin)).json.members).toMatchObject([
      { email: "ada@example.com" },
      { email: "grace@example.com", display_name: "Grace" },
    ]);
    expect((await platform.call("/api/v1/invitations", undefined, admin)).json).toEqual({
      invitations: [],
    });
    const again = new Browser();
    await again.signIn(startUrl(), "grace");
    expect(await me(again)).toMatchObject({ email: "grace@example.com" });
    // Nobody has set a password for her.
    expect((await platform.signIn("grace@example.com")).status).toBe(401);
  });

  it("refuses who is not known here, and says whom to ask", async () => {
    provider.accounts.set("eve", { email: "eve@example.com", email_verified: true });
    const end = new URL(await browser.signIn(startUrl("/device"), "eve"));
    expect(end.pathname).toBe("/sign-in");
    expect(Object.fromEntries(end.searchParams)).toEqual({
      refused: "no_account",
      next: "/device",
    });
    expect(await me()).not.toHaveProperty("email");
  });

  it("does not believe an address that the provider does not vouch for", async () => {
    for (const claims of [
      { email: "ada@example.com" },
      { email: "ada@example.com", email_verified: false },
      {},
    ]) {
      provider.accounts.set("eve", claims);
      const end = await new Browser().signIn(startUrl(), "eve");
      expect(pathOf(end)).toContain("refused=unverified");
    }
  });

  it("takes an answer only in the browser that began, and once", async () => {
    let callback = "";
    const began = new Browser();
    const request = began.request.bind(began);
    began.request = async (url, form) => {
      if (url.includes("/auth/oidc/callback")) {
        callback = url;
        expect(await new Browser().open(url)).toContain("refused=expired");
      }
      return request(url, form);
    };
    expect(pathOf(await began.signIn(startUrl(), "ada"))).toBe("/account");
    expect(await began.open(callback)).toContain("refused=expired");
  });

  it("refuses an answer that was meant for another sign-in", async () => {
    const callback = `${platform.started.url}/auth/oidc/callback`;
    const began = await browser.request(startUrl());
    const state = new URL(began.headers.get("location") ?? "").searchParams.get("state");
    expect(began.headers.getSetCookie()[0]).toMatch(
      /^tessera_oidc=[^;]+; Path=\/auth\/oidc; Max-Age=600; HttpOnly; SameSite=Lax$/,
    );
    const forged = await browser.open(`${callback}?code=forged&state=other`);
    expect(forged).toContain("refused=failed");
    await browser.request(startUrl());
    const denied = new Browser();
    const answer = await denied.request(startUrl());
    const { searchParams } = new URL(answer.headers.get("location") ?? "");
    expect(searchParams.get("state")).not.toBe(state);
    expect(
      await denied.open(
        `${callback}?error=access_denied&state=${searchParams.get("state")}&iss=${encodeURIComponent(provider.issuer)}`,
      ),
    ).toContain("refused=denied");
  });

  it("sends people on to this server only", async () => {
    for (const next of [
      "https://evil.example/",
      "//evil.example/",
      "/\\evil.example",
      "/.//evil.example/",
      "javascript:x",
    ]) {
      const end = await new Browser().signIn(startUrl(next), "ada");
      expect(end).toBe(`${platform.started.url}/`);
    }
  });
});

describe("what asks for a recent sign-in, of a person who signs in by OpenID Connect", () => {
  let folder: Folder;
  let provider: TestProvider;
  let platform: Platform;
  let browser: Browser;
  let token: string;

  const session = () => browser.cookies("localhost");
  const startUrl = (query: Record<string, string> = {}) =>
    `${platform.started.url}/auth/oidc/start?${new URLSearchParams({ next: "/account", ...query })}`;
  const confirmUrl = () => startUrl({ confirm: "true" });
  const reveal = () => platform.call(`/api/v1/tokens/${token}:reveal`, {}, session());
  const failures = async () => {
    const { json } = await platform.call("/api/v1/audit-events", undefined, session());
    const events = json.audit_events as { action: string; subject: string; details?: object }[];
    return events.filter(({ action }) => action === "sign_in.failed");
  };

  beforeAll(async () => {
    folder = new Folder();
    provider = await TestProvider.listen();
    platform = await start(folder, {
      env: provider.settings,
    });
    provider.serve(`${platform.started.url}/auth/oidc/callback`);
    const admin = await platform.setUp();
    ({ id: token } = await platform.createToken(admin, { kind: "organization" }));
    provider.accounts.set("ada", { email: "ada@example.com", email_verified: true });
    provider.accounts.set("eve", { email: "eve@example.com", email_verified: true });
  });
  beforeEach(() => {
    browser = new Browser();
  });
  afterAll(async () => {
    await platform[Symbol.asyncDispose]();
    await provider[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  it("is not content with a sign-in of which the provider does not say when the person was there", async () => {
    await browser.signIn(startUrl(), "ada");
    const refused = await reveal();
    expect(refused.status).toBe(403);
    expect(refused.json.message).toContain("/auth/oidc/start?confirm=true");
  });

  it("has the provider ask the person again, and believes the time that it says", async () => {
    await browser.signIn(startUrl(), "ada");
    const asked = await browser.request(confirmUrl());
    const { searchParams } = new URL(asked.headers.get("location") ?? "");
    expect(searchParams.get("prompt")).toBe("login");
    expect(searchParams.get("max_age")).toBe("0");
    const sessionCookie = () => /tessera_session=\w+/.exec(session().cookie ?? "")?.[0];
    const before = sessionCookie();
    // The provider knows the browser already, and asks all the same.
    expect(await browser.open(confirmUrl())).toContain("/interaction/");
    expect(await browser.signIn(confirmUrl(), "ada")).toBe(`${platform.started.url}/account`);
    expect(sessionCookie()).toBe(before);
    expect((await reveal()).status).toBe(200);
  });

  it("does not take an answer for which the provider has asked nobody", async () => {
    await browser.signIn(startUrl(), "ada");
    // A browser that leaves out what makes the provider ask.
    const request = browser.request.bind(browser);
    browser.request = (url, form) =>
      request(url.replace("prompt=login", "").replace("max_age=0", ""), form);
    expect(await browser.open(confirmUrl())).toContain("refused=stale");
    expect((await reveal()).status).toBe(403);
  });

  it("does not take another person for the one of the session, and records it", async () => {
    await browser.signIn(startUrl(), "ada");
    const known = (await failures()).length;
    browser.forget("127.0.0.1");
    expect(await browser.signIn(confirmUrl(), "eve")).toContain("refused=other_person");
    expect((await reveal()).status).toBe(403);
    const [failure, ...rest] = await failures();
    expect(rest).toHaveLength(known);
    expect(failure).toMatchObject({
      subject: "ada@example.com",
      details: { way: "oidc", reason: "other_person" },
    });
  });

  it("is for who is signed in", async () => {
    expect(await browser.open(confirmUrl())).toContain("refused=expired");
  });

  it("and a sign-in that is refused leaves an audit event, where it is about somebody here", async () => {
    await browser.signIn(startUrl(), "ada");
    const known = (await failures()).length;
    const stranger = new Browser();
    provider.accounts.set("mallory", { email: "Ada@example.com", email_verified: false });
    expect(await stranger.signIn(startUrl(), "mallory")).toContain("refused=unverified");
    const [failure, ...rest] = await failures();
    expect(rest).toHaveLength(known);
    expect(failure).toMatchObject({
      subject: "ada@example.com",
      details: { way: "oidc", reason: "unverified" },
    });
  });
});

describe("a provider", () => {
  it("may be away: the sign-in page says so, and the next attempt asks again", async () => {
    using folder = new Folder();
    await using provider = await TestProvider.listen();
    await using platform = await start(folder, {
      env: { TESSERA_OIDC_ISSUER: provider.issuer, TESSERA_OIDC_CLIENT_ID: CLIENT.id },
    });
    await platform.setUp();
    const startUrl = `${platform.started.url}/auth/oidc/start`;
    expect(await new Browser().open(startUrl)).toContain("refused=failed");
    // Also without a secret, as a public client.
    provider.serve(`${platform.started.url}/auth/oidc/callback`, {});
    provider.accounts.set("ada", { email: "ada@example.com", email_verified: true });
    expect(await new Browser().signIn(startUrl, "ada")).toBe(`${platform.started.url}/`);
  });
});
