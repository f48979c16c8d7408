/** Guesses at one person's password from many places, and the person meanwhile. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { AuthService } from "../../../gen/tessera/v1/auth_pb.js";
import { TestPlatform } from "../../server/rpc/platform.ts";
import { newCompany, newName, PASSWORD } from "../../server/rpc/world.ts";
import { openSqlite } from "../../storage/sqlite/databases.ts";

const { signIn, confirmPassword } = AuthService.method;

let platform: TestPlatform;
let email: string;
let session: Record<string, string>;
beforeAll(async () => {
  platform = await TestPlatform.start(await openSqlite(":memory:"));
});
afterAll(() => platform[Symbol.asyncDispose]());
beforeEach(async () => {
  const { admin } = await newCompany(platform);
  email = admin.email;
  session = admin.headers;
});

let networks = 0;

/** An address in a network of its own. */
function elsewhere(): string {
  networks += 1;
  return `172.${16 + (networks >> 8)}.${networks & 255}.1`;
}

const attempt = (
  password: string,
  { address = elsewhere(), who = email, headers = {} as Record<string, string> } = {},
) => platform.call(signIn, { email: who, password }, { address, headers });

const guess = async (count: number, who = email): Promise<string[]> => {
  const outcomes: string[] = [];
  for (let index = 0; index < count; index++) {
    outcomes.push((await attempt(`wrong password ${index}`, { who })).outcome);
  }
  return outcomes;
};

const cookiesOf = (headers: Headers): Record<string, string> => ({
  cookie: headers
    .getSetCookie()
    .map((cookie) => cookie.split(";", 1)[0])
    .join("; "),
});

describe("guesses at one account, each from another network", () => {
  it("are slowed down after thirty", async () => {
    const outcomes = await guess(35);
    expect(new Set(outcomes.slice(0, 30))).toEqual(new Set(["SIGN_IN_FAILED"]));
    expect(new Set(outcomes.slice(30))).toEqual(new Set(["RATE_LIMITED"]));
    const limited = await attempt(PASSWORD);
    expect(limited).toMatchObject({ status: 429, outcome: "RATE_LIMITED" });
    expect(Number(limited.headers.get("retry-after"))).toBeGreaterThan(0);
  });

  it("are slowed down for accounts that do not exist in the same way", async () => {
    const who = `${newName()}@example.com`;
    const outcomes = await guess(35, who);
    expect(outcomes.indexOf("RATE_LIMITED")).toBe(30);
  });

  it("keep the person out neither of a browser nor of an address of theirs, nor of another account", async () => {
    const home = elsewhere();
    const before = await attempt(PASSWORD, { address: home });
    const browser = cookiesOf(before.headers);
    await guess(35);
    expect((await attempt(PASSWORD)).outcome).toBe("RATE_LIMITED");
    expect((await attempt(PASSWORD, { address: home })).outcome).toBe("ok");
    expect((await attempt(PASSWORD, { headers: browser })).outcome).toBe("ok");
    const other = await newCompany(platform);
    const stolen = await attempt(PASSWORD, { who: other.admin.email });
    expect(stolen.outcome).toBe("ok");
    const foreign = cookiesOf(stolen.headers);
    expect((await attempt(PASSWORD, { headers: foreign })).outcome).toBe("RATE_LIMITED");
    const confirmed = await platform.call(
      confirmPassword,
      { password: PASSWORD },
      { headers: session },
    );
    expect(confirmed.outcome).toBe("ok");
  });
});

describe("guesses at one account from one network", () => {
  it("wait longer and longer, and leave other networks alone", async () => {
    const address = elsewhere();
    const outcomes: string[] = [];
    for (let index = 0; index < 7; index++) {
      outcomes.push((await attempt("wrong password", { address })).outcome);
    }
    expect(outcomes.indexOf("RATE_LIMITED")).toBe(5);
    const neighbour = address.replace(/\.1$/, ".2");
    expect((await attempt(PASSWORD, { address: neighbour })).outcome).toBe("RATE_LIMITED");
    expect((await attempt(PASSWORD)).outcome).toBe("ok");
  });

  it("are slowed down in a known browser, too", async () => {
    const browser = cookiesOf((await attempt(PASSWORD)).headers);
    const outcomes: string[] = [];
    for (let index = 0; index < 7; index++) {
      outcomes.push((await attempt("wrong password", { headers: browser })).outcome);
    }
    expect(outcomes.indexOf("RATE_LIMITED")).toBe(5);
  });

  it("are slowed down for who has taken a session, too", async () => {
    const outcomes: string[] = [];
    for (let index = 0; index < 7; index++) {
      const message = { password: "wrong password" };
      const options = { headers: session, address: elsewhere() };
      outcomes.push((await platform.call(confirmPassword, message, options)).outcome);
    }
    expect(outcomes.indexOf("RATE_LIMITED")).toBe(5);
  });
});

describe("a new password", () => {
  const NEW_PASSWORD = "a newer password";
  const change = (headers: Record<string, string>) =>
    platform.call(
      AuthService.method.changePassword,
      { currentPassword: PASSWORD, newPassword: NEW_PASSWORD },
      { headers },
    );

  it("makes strangers of the browsers that knew the old one, and not of that in which it was chosen", async () => {
    const browser = cookiesOf((await attempt(PASSWORD)).headers);
    const changed = await change(session);
    expect(changed.outcome).toBe("ok");
    await guess(35);
    expect((await attempt(NEW_PASSWORD, { headers: browser })).outcome).toBe("RATE_LIMITED");
    const own = cookiesOf(changed.headers);
    expect((await attempt(NEW_PASSWORD, { headers: own })).outcome).toBe("ok");
  });

  it("is known in the browser that signs in with it, under another id", async () => {
    const before = cookiesOf((await attempt(PASSWORD)).headers);
    await change(session);
    const after = cookiesOf((await attempt(NEW_PASSWORD, { headers: before })).headers);
    await guess(35);
    expect((await attempt(NEW_PASSWORD, { headers: after })).outcome).toBe("ok");
  });
});

it("the cookie of a known browser is sealed, and for no script", async () => {
  const answer = await attempt(PASSWORD);
  const [, device = ""] = answer.headers.getSetCookie();
  expect(device).toMatch(
    /^__Host-tessera_device=[\w.-]+; Path=\/; .*; HttpOnly; SameSite=Lax; Secure$/,
  );
  expect(device).not.toContain(email);
});
