import { existsSync, readFileSync } from "node:fs";
import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  AuthService,
  LoginService,
  PrincipalKind,
  TokenAccess,
  TokenService,
} from "../../../src/client/index.ts";
import { problem } from "../../../src/errors.ts";
import { type Answering, answeringCalls } from "./answering.ts";
import { Person } from "./person.ts";

const VALUE = "tsrp_abcdefghijklmnopqrstuvwxyz0123456789";
const PRINCIPAL = {
  kind: PrincipalKind.PERSONAL_TOKEN,
  organization: "acme",
  email: "ada@example.com",
  tokenId: "t1",
  access: [TokenAccess.DEVELOPER_OPERATIONS],
};

let person: Person;
beforeEach(() => {
  person = new Person();
});
afterEach(() => person[Symbol.dispose]());

const pending = () => problem("LOGIN_PENDING", "not yet");
const granted = { token: { tokenId: "t1" }, value: VALUE };

/** A platform whose answers to a waiting program are these, one after another. */
async function platform(
  answers: readonly (ConnectError | typeof granted)[],
  auth: Partial<ServiceImpl<typeof AuthService>> = { getCurrentPrincipal: () => PRINCIPAL },
): Promise<Answering & { readonly deleted: string[] }> {
  const left = [...answers];
  const deleted: string[] = [];
  const server = await answeringCalls(({ service }) => {
    service(LoginService, {
      startDeviceLogin: () => ({
        deviceCode: "secret-code",
        userCode: "BCDF-GHJK",
        verificationUrl: "https://tessera.example.com/device",
        verificationUrlComplete: "https://tessera.example.com/device?user_code=BCDF-GHJK",
        interval: { seconds: 2n, nanos: 500_000_000 },
      }),
      redeemDeviceLogin: ({ deviceCode }) => {
        expect(deviceCode).toBe("secret-code");
        const answer = left.shift() ?? pending();
        if (answer instanceof ConnectError) {
          throw answer;
        }
        return answer;
      },
    });
    service(AuthService, auth);
    service(TokenService, {
      deleteToken: ({ tokenId }) => {
        deleted.push(tokenId);
        return {};
      },
    });
  });
  return { ...server, deleted, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

function logIn({ url }: Answering, ...args: readonly string[]) {
  return person.run(["cloud", "login", "--endpoint", url, "--device", ...args]);
}

describe("a login with a code", () => {
  it("shows the code, asks at the interval, and keeps the token", async () => {
    await using server = await platform([pending(), pending(), granted]);
    const { code, stdout, stderr } = await logIn(server);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: "Logged in to organization acme as ada@example.com\n",
    });
    expect(stderr).toMatch(/the code BCDF-GHJK:\n\n {2}https:\S+\/device\?user_code=BCDF-GHJK\n/);
    expect(stderr).not.toContain("secret-code");
    expect(stderr).not.toContain(VALUE);
    expect(person.waitsMs).toEqual([2500, 2500, 2500]);
    expect(JSON.parse(readFileSync(person.contextFile, "utf8"))).toEqual({
      endpoint: server.url,
      api_token: VALUE,
    });
  });

  it("asks less often from then on when the server says so", async () => {
    const slow = problem("LOGIN_SLOW_DOWN", "slower");
    await using server = await platform([pending(), slow, pending(), granted]);
    expect(await logIn(server)).toMatchObject({ code: 0 });
    expect(person.waitsMs).toEqual([2500, 2500, 7500, 7500]);
  });

  it("goes on while the server is away for a moment", async () => {
    const away = new ConnectError("away", Code.Unavailable);
    await using server = await platform([away, granted]);
    expect(await logIn(server)).toMatchObject({ code: 0 });
    expect(person.waitsMs).toEqual([2500, 5000]);
  });

  it.each([
    ["was refused", problem("LOGIN_DENIED", "no"), "the login was refused in the browser"],
    ["has expired", problem("LOGIN_INVALID", "?"), "the code has expired"],
  ])("says that it %s, and keeps nothing", async (_, answer, words) => {
    await using server = await platform([pending(), answer]);
    const { code, stderr } = await logIn(server);
    expect(code).toBe(1);
    expect(stderr).toContain(`tessera: ${words}`);
    expect(existsSync(person.contextFile)).toBe(false);
  });

  it("ends with Ctrl-C", async () => {
    await using server = await platform([]);
    person.beforeWaitEnds = () => {
      if (person.waitsMs.length === 3) {
        person.interrupt();
      }
    };
    const { code, stdout } = await logIn(server);
    expect({ code, stdout }).toEqual({ code: 130, stdout: "" });
    expect(person.waitsMs).toHaveLength(3);
  });

  it("deletes the token that was made for it when it cannot be used", async () => {
    await using server = await platform([granted]);
    const { code, stderr } = await logIn(server, "--organization", "other");
    expect(code).toBe(1);
    expect(stderr).toContain("this token is for organization acme, not other");
    expect(server.deleted).toEqual(["t1"]);
    expect(existsSync(person.contextFile)).toBe(false);
  });
});

describe("a token", () => {
  const check = async (principal: object) => {
    await using server = await platform([], { getCurrentPrincipal: () => principal });
    return await person.run(["cloud", "login", "--endpoint", server.url, "--api-token", "-"], {
      input: `${VALUE}\n`,
    });
  };

  it.each([
    ["lacks the access", { ...PRINCIPAL, access: [2] }, /it lacks developer operations access/],
    ["is of tessera serve", { kind: PrincipalKind.SHARED_TOKEN }, /is served by tessera serve/],
    ["is not asked for", { kind: PrincipalKind.ANONYMOUS }, /is served by tessera serve/],
  ])("that %s is not kept", async (_, principal, words) => {
    const { code, stderr } = await check(principal);
    expect(code).toBe(1);
    expect(stderr).toMatch(words);
    expect(existsSync(person.contextFile)).toBe(false);
  });
});
