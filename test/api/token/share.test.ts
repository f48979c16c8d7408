/** No member uses up the tokens that an organization may have. */
import { createHash, randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { LoginService } from "../../../gen/tessera/v1/login_pb.js";
import { TokenService } from "../../../gen/tessera/v1/token_pb.js";
import { TestPlatform } from "../../server/rpc/platform.ts";
import { type MadeToken, newMember, newToken, type Person } from "../../server/rpc/world.ts";
import { openSqlite } from "../../storage/sqlite/databases.ts";
import { TokenCalls } from "./calls.ts";

const SHARE = 1_000;

let platform: TestPlatform;
let calls: TokenCalls;
let member: Person;
let last: MadeToken;
beforeAll(async () => {
  platform = await TestPlatform.start(await openSqlite(":memory:"));
  calls = await TokenCalls.inNewCompany(platform);
  member = await newMember(platform, calls.company);
  const { userId } = member;
  const past = { kind: "personal", userId, expiresAtMs: platform.now() - 1 } as const;
  for (let count = 1; count < SHARE; count++) {
    await newToken(platform, calls.company, past);
  }
  last = await newToken(platform, calls.company, { kind: "personal", userId });
});
afterAll(() => platform[Symbol.asyncDispose]());

it("gives each member a share of personal tokens, which leaves room for all others", async () => {
  const { headers } = member;
  const refused = await calls.create({}, headers);
  expect(refused).toMatchObject({ status: 429, outcome: "LIMIT_REACHED" });
  expect(refused.body.message).toContain(
    `you have ${SHARE} personal tokens in ${calls.company.name}, expired ones included`,
  );
  expect(refused.body.message).toContain("delete personal tokens of yours");
  const byToken = await calls.create({ expiresAt: undefined }, last.headers);
  expect(byToken.outcome).toBe("LIMIT_REACHED");
  expect((await calls.create()).outcome).toBe("ok");
  expect((await calls.create({ kind: "TOKEN_KIND_ORGANIZATION" })).outcome).toBe("ok");

  const { tokenId } = last;
  await platform.call(TokenService.method.deleteToken, { tokenId }, { headers });
  expect((await calls.create({}, headers)).outcome).toBe("ok");
});

it("tells who logs in on the command line the same", async () => {
  const { authorizeLogin, redeemLogin } = LoginService.method;
  const codeVerifier = randomBytes(32).toString("base64url");
  const redirectUri = "http://127.0.0.1:7777/callback";
  const authorized = await platform.call(
    authorizeLogin,
    {
      codeChallenge: createHash("sha256").update(codeVerifier).digest("base64url"),
      codeChallengeMethod: "S256",
      redirectUri,
      state: "state-of-16-chars",
      hostName: "laptop",
    },
    { headers: member.headers },
  );
  const code = new URL(authorized.body.redirectUrl).searchParams.get("code");
  const refused = await platform.call(redeemLogin, { code, codeVerifier, redirectUri });
  expect(refused).toMatchObject({ status: 429, outcome: "LIMIT_REACHED" });
  expect(refused.body.message).toContain("delete personal tokens of yours");
});
