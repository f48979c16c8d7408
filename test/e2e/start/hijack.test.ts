/** Somebody makes an account under another person's address, before that person comes. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Browser, TestProvider } from "./oidc.ts";
import {
  type Answer,
  bearer,
  cookieOf,
  Folder,
  PASSWORD,
  type Platform,
  start,
} from "./platform.ts";

const CEO = "ceo@corp.example";
const GUESSED_FIRST = "the password of the attacker";

type Headers = Record<string, string>;

const codeOf = ({ json }: Answer): string => String(json.url).split("#code=")[1] ?? "";

describe("an account that somebody made under another person's address", () => {
  let folder: Folder;
  let provider: TestProvider;
  let platform: Platform;
  let admin: Headers;
  /** What the attacker has: a session, tokens, a program that waits for its login, an invitation. */
  let stolen: {
    session: Headers;
    personal: Headers;
    organization: Headers;
    deviceCode: string;
    loginCode: string;
    invitation: string;
  };
  const owner = new Browser();
  let end: string;

  const call = async (path: string, body: object | undefined, headers: Headers) => {
    const answer = await platform.call(path, body, headers);
    expect(answer.status, `${path} ${JSON.stringify(answer.json)}`).toBe(200);
    return answer;
  };
  const invite = (organization: string, email: string, by: Headers) =>
    call("/api/v1/members:invite", { organization, email, role: "admin" }, by);
  const accept = (invitation: Answer, password: string | undefined, headers: Headers = {}) =>
    platform.call(
      "/api/v1/auth:acceptInvitation",
      { invitation_code: codeOf(invitation), ...(password && { password }) },
      headers,
    );
  const auditOf = async (organization: string) => {
    const { json } = await call(
      `/api/v1/audit-events?organization=${organization}`,
      undefined,
      admin,
    );
    return json.audit_events as { action: string; subject: string; details: object }[];
  };
  const VERIFIER = "v".repeat(43);
  const REDIRECT = "http://127.0.0.1:9/callback";

  beforeAll(async () => {
    folder = new Folder();
    provider = await TestProvider.listen();
    platform = await start(folder, {
      env: provider.settings,
    });
    provider.serve(`${platform.started.url}/auth/oidc/callback`);
    provider.accounts.set("ceo", { email: CEO, email_verified: true });
    admin = await platform.setUp();
    await call("/api/v1/organizations", { name: "corp" }, admin);
    // The attacker is an admin of the first organization, and sees the link of an invitation.
    const mallory = cookieOf(
      await accept(await invite("acme", "mallory@evil.example", admin), PASSWORD),
    );
    const session = cookieOf(await accept(await invite("acme", CEO, mallory), GUESSED_FIRST));
    stolen = await plunder(session);
    end = await owner.signIn(`${platform.started.url}/auth/oidc/start?next=/device`, "ceo");
    const joined = await accept(
      await invite("corp", CEO, admin),
      undefined,
      owner.cookies("localhost"),
    );
    expect(joined.status, JSON.stringify(joined.json)).toBe(200);
  });
  afterAll(async () => {
    await platform[Symbol.asyncDispose]();
    await provider[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  /** Everything that the attacker can get by the account while it is theirs. */
  async function plunder(session: Headers): Promise<typeof stolen> {
    const personal = await platform.createToken(session);
    const organization = await platform.createToken(session, { kind: "organization", name: "ci" });
    const device = await call("/api/v1/login:startDevice", { host_name: "evil" }, {});
    const { device_code: deviceCode, user_code: userCode } = device.json;
    await call("/api/v1/login:answerDevice", { user_code: userCode, approve: true }, session);
    const challenge = Buffer.from(
      await crypto.subtle.digest("SHA-256", Buffer.from(VERIFIER)),
    ).toString("base64url");
    const authorized = await call(
      "/api/v1/login:authorize",
      {
        redirect_uri: REDIRECT,
        code_challenge: challenge,
        code_challenge_method: "S256",
        state: "state-of-the-program",
        host_name: "evil",
      },
      session,
    );
    const loginCode = new URL(String(authorized.json.redirect_url)).searchParams.get("code") ?? "";
    const invitation = codeOf(await invite("acme", "second@evil.example", session));
    return {
      session,
      personal: bearer(personal.value),
      organization: bearer(organization.value),
      deviceCode: String(deviceCode),
      loginCode,
      invitation,
    };
  }

  it("lets its owner in by a provider that has verified the address", async () => {
    const { json } = await call("/api/v1/me", undefined, owner.cookies("localhost"));
    expect(json).toMatchObject({
      email: CEO,
      organizations: [{ name: "acme" }, { name: "corp", role: "admin" }],
    });
  });

  it("has lost the password that somebody else set", async () => {
    expect((await platform.signIn(CEO, GUESSED_FIRST)).status).toBe(401);
  });

  it("has lost every session and token from before", async () => {
    for (const headers of [stolen.session, stolen.personal, stolen.organization]) {
      expect(await platform.whoIs(headers)).toBe(401);
      const members = "/api/v1/members?organization=corp";
      expect((await platform.call(members, undefined, headers)).status).toBe(401);
    }
  });

  it("gives no token to a program whose login somebody else approved", async () => {
    const { deviceCode: device_code, loginCode: code } = stolen;
    const byDevice = await platform.call("/api/v1/login:redeemDevice", { device_code });
    expect(byDevice.status).toBe(400);
    expect(JSON.stringify(byDevice.json)).toContain("LOGIN_INVALID");
    const byBrowser = await platform.call("/api/v1/login:redeem", {
      code,
      code_verifier: VERIFIER,
      redirect_uri: REDIRECT,
    });
    expect(JSON.stringify(byBrowser.json)).toContain("LOGIN_INVALID");
  });

  it("has withdrawn the invitations that somebody else sent in its name", async () => {
    const { status } = await platform.call("/api/v1/auth:getInvitation", {
      invitation_code: stolen.invitation,
    });
    expect(status).toBe(404);
  });

  it("tells its owner at once what ended, in the page and in the audit log", async () => {
    const { pathname, searchParams } = new URL(end);
    expect(pathname).toBe("/account-secured");
    expect(Object.fromEntries(searchParams)).toEqual({
      password: "true",
      sessions: "1",
      personal_tokens: "1",
      organization_tokens: "1",
      invitations: "1",
      next: "/device",
    });
    const events = (await auditOf("acme")).filter(({ action }) => action === "email.verify");
    expect(events).toMatchObject([
      { subject: CEO, details: { way: "oidc", password_ended: "true", sessions_ended: "1" } },
    ]);
  });

  it("is its owner's from then on: the next sign-in ends nothing", async () => {
    const again = new Browser();
    const url = `${platform.started.url}/auth/oidc/start?next=/device`;
    expect(new URL(await again.signIn(url, "ceo")).pathname).toBe("/device");
    expect(await platform.whoIs(owner.cookies("localhost"))).toBe(200);
  });
});
