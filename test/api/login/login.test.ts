import { createHash } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { LoginService } from "../../../gen/tessera/v1/login_pb.js";
import { OrganizationService } from "../../../gen/tessera/v1/organization_pb.js";
import { DATABASES } from "../../server/rpc/databases.ts";
import { TestPlatform, violatedFields } from "../../server/rpc/platform.ts";
import { type Company, newCompany, newMember } from "../../server/rpc/world.ts";

const {
  authorizeLogin,
  redeemLogin,
  startDeviceLogin,
  getDeviceLogin,
  answerDeviceLogin,
  redeemDeviceLogin,
} = LoginService.method;

const VERIFIER = "a-verifier-of-43-characters-or-a-few-more-than-that";
const REDIRECT = "http://127.0.0.1:49152/callback?from=cli";

describe.each(DATABASES)("logins of the command line on $database", ({ open }) => {
  let platform: TestPlatform;
  let company: Company;
  beforeAll(async () => {
    platform = await TestPlatform.start(await open());
  });
  afterAll(() => platform[Symbol.asyncDispose]());
  beforeEach(async () => {
    company = await newCompany(platform);
  });

  const me = (value: string) =>
    platform.rest("GET", "/api/v1/me", undefined, {
      headers: { authorization: `Bearer ${value}` },
    });

  describe("by browser", () => {
    const authorize = (changes: object = {}) =>
      platform.call(
        authorizeLogin,
        {
          redirectUri: REDIRECT,
          codeChallenge: createHash("sha256").update(VERIFIER).digest("base64url"),
          codeChallengeMethod: "S256",
          state: "state-of-16-chars",
          hostName: "ada's laptop",
          ...changes,
        },
        { headers: company.admin.headers },
      );

    const authorized = async () => {
      const { body } = await authorize();
      const url = new URL(body.redirectUrl);
      const code = url.searchParams.get("code") ?? "";
      platform.secrets.add(code);
      return { url, code };
    };

    const redeem = (changes: object) =>
      platform.call(redeemLogin, { codeVerifier: VERIFIER, redirectUri: REDIRECT, ...changes });

    it("end in a personal token for developer operations, named after the host, for 90 days", async () => {
      const { url, code } = await authorized();
      expect(url.href).toMatch(/^http:\/\/127\.0\.0\.1:49152\/callback\?from=cli&code=/);
      expect(url.searchParams.get("state")).toBe("state-of-16-chars");
      const { body, headers } = await redeem({ code });
      expect(body).toMatchObject({
        organization: company.name,
        email: company.admin.email,
        token: {
          kind: "TOKEN_KIND_PERSONAL",
          access: ["TOKEN_ACCESS_DEVELOPER_OPERATIONS"],
          name: "ada's laptop",
        },
      });
      const days = (Date.parse(body.token.expiresAt) - platform.now()) / (24 * 3_600_000);
      expect(days).toBeCloseTo(90, 1);
      expect(headers.get("cache-control")).toBe("no-store");
      expect((await me(body.value)).body).toMatchObject({ kind: "personal_token" });
    });

    it("are redeemed once", async () => {
      const { code } = await authorized();
      expect((await redeem({ code })).outcome).toBe("ok");
      const again = await redeem({ code });
      expect(again).toMatchObject({ status: 400, outcome: "LOGIN_INVALID" });
    });

    it.each([
      ["another verifier", { codeVerifier: `${VERIFIER}x` }],
      ["no verifier", { codeVerifier: "" }],
      ["another redirect", { redirectUri: "http://127.0.0.1:49153/callback" }],
    ])("are used up by an attempt with %s", async (_, changes) => {
      const { code } = await authorized();
      expect((await redeem({ code, ...changes })).outcome).toBe("LOGIN_INVALID");
      expect((await redeem({ code })).outcome).toBe("LOGIN_INVALID");
    });

    it("are not redeemed after a minute, nor for who has left", async () => {
      const { code: late } = await authorized();
      platform.advance(60_001);
      expect((await redeem({ code: late })).outcome).toBe("LOGIN_INVALID");
      const member = await newMember(platform, company);
      const { body } = await platform.call(
        authorizeLogin,
        {
          redirectUri: REDIRECT,
          codeChallenge: createHash("sha256").update(VERIFIER).digest("base64url"),
          codeChallengeMethod: "S256",
          state: "state-of-16-chars",
        },
        { headers: member.headers },
      );
      const code = new URL(body.redirectUrl).searchParams.get("code");
      const remove = OrganizationService.method.removeMember;
      const { userId } = member;
      await platform.call(remove, { userId }, { headers: company.admin.headers });
      expect((await redeem({ code })).outcome).toBe("LOGIN_INVALID");
    });

    it.each([
      ["redirect_uri", { redirectUri: "https://evil.example/" }],
      ["redirect_uri", { redirectUri: "http://localhost:49152/" }],
      ["redirect_uri", { redirectUri: "http://127.0.0.1/" }],
      ["redirect_uri", { redirectUri: "http://127.0.0.1:49152@evil.example/" }],
      ["redirect_uri", { redirectUri: "http://127.0.0.1:49152.evil.example/" }],
      ["redirect_uri", { redirectUri: "http://127.0.0.1:49152/#x" }],
      ["redirect_uri", { redirectUri: "http://127.0.0.1:99999/" }],
      ["redirect_uri", { redirectUri: "javascript:alert(1)//http://127.0.0.1:1/" }],
      ["code_challenge", { codeChallenge: "short" }],
      ["code_challenge_method", { codeChallengeMethod: "plain" }],
      ["state", { state: "short" }],
      ["state", { state: "with spaces and newlines" }],
      ["host_name", { hostName: "a\u202eb" }],
    ])("are not begun with a wrong %s: %j", async (field, changes) => {
      const answer = await authorize(changes);
      expect(answer.outcome).toBe("REQUEST_INVALID");
      expect(violatedFields(answer)).toEqual([field]);
    });
  });

  describe("by code", () => {
    const start = async () =>
      (await platform.call(startDeviceLogin, { hostName: "server" }, { address: "192.0.2.1" }))
        .body;

    const answer = (message: object) =>
      platform.call(answerDeviceLogin, message, { headers: company.admin.headers });

    const redeem = (deviceCode: string) => platform.call(redeemDeviceLogin, { deviceCode });

    it("end in a token once the person, who was told who asks, said yes", async () => {
      const { deviceCode, userCode, ...shown } = await start();
      expect(userCode).toMatch(/^[B-Z]{4}-[B-Z]{4}$/);
      expect(shown).toMatchObject({
        verificationUrl: "https://tessera.example/device",
        verificationUrlComplete: `https://tessera.example/device?user_code=${userCode}`,
        interval: "5s",
      });
      expect((await redeem(deviceCode)).outcome).toBe("LOGIN_PENDING");
      const typed = userCode.toLowerCase().replace("-", " ");
      const { headers } = company.admin;
      const asking = await platform.call(getDeviceLogin, { userCode: typed }, { headers });
      expect(asking.body).toMatchObject({ userCode, hostName: "server", address: "192.0.2.1" });
      expect((await answer({ userCode: typed, approve: true })).outcome).toBe("ok");
      platform.advance(5_000);
      const { body } = await redeem(deviceCode);
      expect(body).toMatchObject({ organization: company.name, email: company.admin.email });
      expect((await me(body.value)).body.token_name).toBe("server");
      platform.advance(5_000);
      expect((await redeem(deviceCode)).outcome).toBe("LOGIN_INVALID");
      expect((await answer({ userCode, approve: true })).outcome).toBe("LOGIN_NOT_FOUND");
    });

    it("end when the person says no", async () => {
      const { deviceCode, userCode } = await start();
      expect((await answer({ userCode })).outcome).toBe("ok");
      expect(await redeem(deviceCode)).toMatchObject({ status: 403, outcome: "LOGIN_DENIED" });
    });

    it("slow down who asks too often", async () => {
      const { deviceCode } = await start();
      expect((await redeem(deviceCode)).outcome).toBe("LOGIN_PENDING");
      const soon = await redeem(deviceCode);
      expect(soon).toMatchObject({ status: 429, outcome: "LOGIN_SLOW_DOWN" });
      platform.advance(6_000);
      expect((await redeem(deviceCode)).outcome).toBe("LOGIN_SLOW_DOWN");
      platform.advance(15_000);
      expect((await redeem(deviceCode)).outcome).toBe("LOGIN_PENDING");
    });

    it("end after 10 minutes", async () => {
      const { deviceCode, userCode } = await start();
      platform.advance(10 * 60_000 + 1);
      expect((await redeem(deviceCode)).outcome).toBe("LOGIN_INVALID");
      expect((await answer({ userCode, approve: true })).outcome).toBe("LOGIN_NOT_FOUND");
    });

    it("are for an organization of the person who answers", async () => {
      const { userCode } = await start();
      const { name: organization } = await newCompany(platform);
      const refused = await answer({ userCode, approve: true, organization });
      expect(refused.outcome).toBe("ORGANIZATION_NOT_FOUND");
    });

    it("cannot be guessed: attempts at codes are limited", async () => {
      const { headers } = company.admin;
      const options = { headers, address: "198.51.100.9" };
      const outcomes: string[] = [];
      for (let attempt = 0; attempt < 25; attempt++) {
        const guess = { userCode: "BCDF-GHJK" };
        outcomes.push((await platform.call(getDeviceLogin, guess, options)).outcome);
      }
      expect(new Set(outcomes)).toEqual(new Set(["LOGIN_NOT_FOUND", "RATE_LIMITED"]));
    });

    it("are begun only so often from one address", async () => {
      const options = { address: "198.51.100.10" };
      const outcomes: string[] = [];
      for (let attempt = 0; attempt < 25; attempt++) {
        outcomes.push((await platform.call(startDeviceLogin, {}, options)).outcome);
      }
      expect(outcomes.slice(0, 10)).toEqual(Array(10).fill("ok"));
      expect(outcomes).toContain("RATE_LIMITED");
    });
  });

  it("leave no code, verifier or value in the log or in an error", () => {
    expect(platform.leaks()).toEqual([]);
  });
});
