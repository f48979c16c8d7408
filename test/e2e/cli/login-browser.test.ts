import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { challengeOf } from "../../../src/cli/login/browser.ts";
import {
  AuthService,
  LoginService,
  PrincipalKind,
  TokenAccess,
} from "../../../src/client/index.ts";
import { problem } from "../../../src/errors.ts";
import { type Answering, answeringCalls } from "./answering.ts";
import { Person } from "./person.ts";

const VALUE = "tsrp_abcdefghijklmnopqrstuvwxyz0123456789";

/** A browser that goes where it is sent, as `xdg-open` starts one. */
const BROWSER = `#!${process.execPath}
fetch(process.argv[2]).then((res) => res.text());
`;

const programs = mkdtempSync(join(tmpdir(), "tessera-programs-"));
const { PATH } = process.env;

beforeAll(() => {
  const path = join(programs, "xdg-open");
  writeFileSync(path, BROWSER);
  chmodSync(path, 0o755);
  process.env.PATH = `${programs}${delimiter}${PATH}`;
});
afterAll(() => {
  process.env.PATH = PATH;
  rmSync(programs, { recursive: true });
});

let person: Person;
beforeEach(() => {
  person = new Person();
});
afterEach(() => person[Symbol.dispose]());

/** A platform whose page answers at once; `redirect` says with what, given what it was asked. */
async function platform(
  redirect: (asked: URLSearchParams) => Record<string, string>,
): Promise<Answering & { readonly asked: URLSearchParams[] }> {
  const asked: URLSearchParams[] = [];
  const pages: RequestListener = (req, res) => {
    const url = new URL(req.url ?? "", "http://x");
    expect(url.pathname).toBe("/cli/authorize");
    asked.push(url.searchParams);
    const to = new URL(url.searchParams.get("redirect_uri") ?? "");
    to.search = new URLSearchParams(redirect(url.searchParams)).toString();
    res.writeHead(302, { location: to.href }).end();
  };
  const server = await answeringCalls(({ service }) => {
    service(LoginService, {
      redeemLogin: ({ code, codeVerifier, redirectUri }) => {
        const [query] = asked;
        if (
          code !== "the-code" ||
          challengeOf(codeVerifier) !== query?.get("code_challenge") ||
          redirectUri !== query.get("redirect_uri")
        ) {
          throw problem("LOGIN_INVALID", "the code does not fit");
        }
        return { token: { tokenId: "t1" }, value: VALUE };
      },
    });
    service(AuthService, {
      getCurrentPrincipal: () => ({
        kind: PrincipalKind.PERSONAL_TOKEN,
        organization: "acme",
        email: "ada@example.com",
        access: [TokenAccess.DEVELOPER_OPERATIONS],
      }),
    });
  }, pages);
  return { ...server, asked, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

function logIn({ url }: Answering, ...args: readonly string[]) {
  return person.run(["cloud", "login", "--endpoint", url, "--browser", ...args]);
}

const yes = (asked: URLSearchParams) => ({ code: "the-code", state: asked.get("state") ?? "" });

/** Resolves with the address of the page, when the program has printed it. */
function printedUrl(): Promise<URL> {
  return new Promise((resolve) => {
    person.onStderr = (text) => {
      const [url] = /http:\/\/\S+\/cli\/authorize\S+/.exec(text) ?? [];
      if (url !== undefined && text.includes("Waiting")) {
        resolve(new URL(url));
      }
    };
  });
}

describe("a login in the browser", () => {
  it("opens the page, takes the code from the redirect, and keeps the token", async () => {
    await using server = await platform(yes);
    const { code, stdout, stderr } = await logIn(server, "--organization", "acme");
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: "Logged in to organization acme as ada@example.com\n",
    });
    const [query] = server.asked;
    expect(Object.fromEntries(query ?? [])).toEqual({
      redirect_uri: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/callback$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: "S256",
      state: expect.stringMatching(/^[\w-]{43}$/),
      host_name: expect.any(String),
      organization: "acme",
    });
    expect(stderr).toContain(`${server.url}/cli/authorize?`);
    expect(stderr).not.toContain(VALUE);
    expect(existsSync(person.contextFile)).toBe(true);
  });

  it.each([
    [
      "was refused there",
      (asked: URLSearchParams) => ({ ...yes(asked), error: "access_denied" }),
      "the login was refused in the browser",
    ],
    [
      "belongs to another login",
      () => ({ code: "the-code", state: "x".repeat(43) }),
      "does not belong to this login",
    ],
    ["has no state", () => ({ code: "the-code" }), "does not belong to this login"],
    [
      "has no code",
      (asked: URLSearchParams) => ({ state: asked.get("state") ?? "" }),
      "brought no code",
    ],
    [
      "has a wrong code",
      (asked: URLSearchParams) => ({ ...yes(asked), code: "x" }),
      "the code does not fit",
    ],
  ])("keeps nothing when the answer %s", async (_, redirect, words) => {
    await using server = await platform(redirect);
    const { code, stderr } = await logIn(server);
    expect(code).toBe(1);
    expect(stderr).toContain(words);
    expect(existsSync(person.contextFile)).toBe(false);
  });

  it("prints the page for those whose browser does not open, and ends with Ctrl-C", async () => {
    process.env.PATH = "";
    try {
      await using server = await platform(yes);
      const printed = printedUrl();
      const login = logIn(server);
      const url = await printed;
      expect(url.origin).toBe(server.url);
      person.interrupt();
      const { code, stderr } = await login;
      expect(code).toBe(130);
      expect(stderr).toContain("Go to this page in a browser on this machine");
      // Nothing listens any more.
      await expect(fetch(url.searchParams.get("redirect_uri") ?? "")).rejects.toThrow();
    } finally {
      process.env.PATH = `${programs}${delimiter}${PATH}`;
    }
  });

  it("answers one redirect only, under its own address only, and says what became of it", async () => {
    process.env.PATH = "";
    try {
      await using server = await platform(yes);
      const printed = printedUrl();
      const login = logIn(server);
      const url = await printed;
      const redirectUri = url.searchParams.get("redirect_uri") ?? "";
      const elsewhere = await fetch(new URL("/favicon.ico", redirectUri));
      expect(elsewhere.status).toBe(404);
      expect((await fetch(redirectUri, { method: "POST" })).status).toBe(404);
      const page = await fetch(url);
      expect(page.status).toBe(200);
      expect(await page.text()).toContain("You are logged in. You can close this window.");
      expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
      expect(await login).toMatchObject({ code: 0 });
    } finally {
      process.env.PATH = `${programs}${delimiter}${PATH}`;
    }
  });
});

it("digests the verifier as RFC 7636 shows in its appendix B", () => {
  expect(challengeOf("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")).toBe(
    "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
  );
});
