import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { chromiumMissing, launchChromium } from "../console/chromium.ts";
import { CLIENT, TestProvider } from "./oidc.ts";
import { bearer, cookieOf, Folder, PASSWORD, type Platform, start } from "./platform.ts";

const skipped = leftOut(chromiumMissing);

/** A program that waits for its login on this machine, as `tessera cloud login` does. */
async function waitingProgram() {
  const { promise: called, resolve } = Promise.withResolvers<URLSearchParams>();
  const server = createServer((req, res) => {
    const url = new URL(req.url ?? "/", "http://program");
    if (url.pathname === "/callback") {
      resolve(url.searchParams);
    }
    res.end("You can close this page.");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const verifier = randomBytes(32).toString("base64url");
  const redirectUri = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`;
  const query = new URLSearchParams({
    redirect_uri: redirectUri,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
    state: randomBytes(16).toString("base64url"),
    host_name: "ada's laptop",
  });
  return {
    path: `/cli/authorize?${query}`,
    state: query.get("state"),
    verifier,
    redirectUri,
    called,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

describe.skipIf(skipped)(`the pages in a browser${skipped}`, () => {
  let browser: Browser;
  let folder: Folder;
  let provider: TestProvider;
  let platform: Platform;
  let context: BrowserContext;
  let page: Page;
  let complaints: string[];
  let isSetUp = false;

  const open = (path: string) => page.goto(platform.started.url + path);
  const click = (name: string | RegExp) => page.getByRole("button", { name }).click();
  const fill = (label: string, text: string) => page.getByLabel(label, { exact: true }).fill(text);
  const heading = (name: string | RegExp) =>
    page.getByRole("heading", { level: 1, name }).waitFor();
  const at = (path: string) => page.waitForURL((url) => url.pathname === path);
  const picture = async (name: string) => {
    if (process.env.TESSERA_SCREENSHOTS) {
      await page.screenshot({
        path: `${process.env.TESSERA_SCREENSHOTS}/${name}.png`,
        fullPage: true,
      });
    }
  };
  const newContext = async (options: Parameters<Browser["newContext"]>[0] = {}) => {
    context = await browser.newContext(options);
    page = await context.newPage();
    page.setDefaultTimeout(10_000);
    page.on("pageerror", (err) => complaints.push(err.message));
    page.on("console", (message) => {
      if (message.text().includes("Content Security Policy")) {
        complaints.push(message.text());
      }
    });
  };
  const setUp = async () => {
    await open(`/setup#code=${platform.setupCode}`);
    await fill("Organization", "acme");
    await fill("E-mail address", "ada@example.com");
    await fill("Your name", "Ada");
    await fill("Password", PASSWORD);
    await click("Set up");
    await heading("acme");
    isSetUp = true;
  };
  /** Signed in, on a platform that somebody has set up; answers the session. */
  const signedIn = async (): Promise<Record<string, string>> => {
    if (!isSetUp) {
      await platform.setUp();
      isSetUp = true;
    }
    const session = cookieOf(await platform.signIn("ada@example.com"));
    const [name = "", value = ""] = (session.cookie ?? "").split("=");
    await context.addCookies([{ name, value, url: platform.started.url }]);
    return session;
  };
  const signIn = async () => {
    await heading("Sign in");
    await fill("E-mail address", "ada@example.com");
    await fill("Password", PASSWORD);
    await click("Sign in");
  };

  beforeAll(async () => {
    browser = await launchChromium();
    folder = new Folder();
    provider = await TestProvider.listen();
    platform = await start(folder, {
      env: {
        TESSERA_OIDC_ISSUER: provider.issuer,
        TESSERA_OIDC_CLIENT_ID: CLIENT.id,
        TESSERA_OIDC_NAME: "Example Corp",
      },
    });
    provider.serve(`${platform.started.url}/auth/oidc/callback`, {});
  });
  afterAll(async () => {
    await browser.close();
    await platform[Symbol.asyncDispose]();
    await provider[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });
  beforeEach(async () => {
    complaints = [];
    await newContext();
  });
  afterEach(async () => {
    await context.close();
    expect(complaints).toEqual([]);
  });

  it("lead from the setup over the sign-in to a login of the command line and of another machine", async () => {
    await open("/");
    await heading("Nobody has set this platform up yet");
    await open(`/setup#code=${platform.setupCode}`);
    await heading("Set up this platform");
    await picture("setup");
    await setUp();
    await page.getByText("npx tessera cloud login --endpoint").waitFor();
    await picture("home");

    await click("ada@example.com");
    await click("Sign out");
    // Not where a call that the end of the session refused leads at once: that page is left again.
    await page.waitForURL((url) => url.pathname + url.search === "/sign-in");
    await using program = await waitingProgram();
    await open(program.path);
    await at("/sign-in");
    await picture("sign-in");
    await signIn();
    await heading("Sign in on the command line");
    await page.getByText("ada's laptop").waitFor();
    await picture("authorize");
    await click("Allow");
    const called = await program.called;
    await page.getByText("You can close this page.").waitFor();
    expect(called.get("state")).toBe(program.state);
    const login = await platform.call("/api/v1/login:redeem", {
      code: called.get("code"),
      code_verifier: program.verifier,
      redirect_uri: program.redirectUri,
    });
    expect(login.json).toMatchObject({ organization: "acme", email: "ada@example.com" });
    expect(await platform.whoIs(bearer(String(login.json.value)))).toBe(200);

    const device = (await platform.call("/api/v1/login:startDevice", { host_name: "server-7" }))
      .json;
    await open("/device");
    await heading("Sign in on another machine");
    await picture("device");
    await fill("Code", String(device.user_code).toLowerCase().replace("-", " "));
    await click("Continue");
    await page.getByText("server-7").waitFor();
    await page.getByText("127.0.0.1", { exact: true }).waitFor();
    await picture("device-ask");
    await click("Allow");
    await heading("Done");
    await picture("device-done");
    const redeemed = await platform.call("/api/v1/login:redeemDevice", {
      device_code: device.device_code,
    });
    expect(await platform.whoIs(bearer(String(redeemed.json.value)))).toBe(200);
  });

  it("take a no: the programs get no token", async () => {
    await signedIn();
    await using program = await waitingProgram();
    await open(program.path);
    await click("Deny");
    const called = await program.called;
    expect(Object.fromEntries(called)).toEqual({ error: "access_denied", state: program.state });

    const device = (await platform.call("/api/v1/login:startDevice", { host_name: "server-7" }))
      .json;
    // The link with the code in it asks all the same.
    await page.goto(String(device.verification_url_complete));
    expect(await page.getByLabel("Code").inputValue()).toBe(device.user_code);
    await click("Continue");
    await click("Deny");
    await heading("Denied");
    const redeemed = await platform.call("/api/v1/login:redeemDevice", {
      device_code: device.device_code,
    });
    expect(redeemed.status).toBe(403);
  });

  it("send codes to no other machine", async () => {
    await signedIn();
    await using program = await waitingProgram();
    const evil = encodeURIComponent("http://127.0.0.1:80@evil.example/");
    await open(program.path.replace(/redirect_uri=[^&]*/, `redirect_uri=${evil}`));
    await heading("This link cannot be used");
    expect(await page.getByRole("button", { name: "Allow" }).count()).toBe(0);
  });

  it("say beside a field what is wrong with it", async () => {
    await open(`/setup#code=${platform.setupCode}`);
    await fill("Organization", "Not A Name");
    await fill("E-mail address", "ada@example.com");
    await fill("Password", PASSWORD);
    await click("Set up");
    const field = page.getByLabel("Organization");
    await field.and(page.locator("[aria-invalid=true]:focus")).waitFor();
    await page.getByText("lower case letters, digits and hyphens, with").waitFor();
    // By the hint, and by what is wrong.
    expect((await field.getAttribute("aria-describedby"))?.split(" ")).toHaveLength(2);
    await picture("setup-wrong");
  });

  it("say what is wrong with a sign-in, and lead through the provider", async () => {
    await signedIn();
    await context.clearCookies();
    await open("/");
    await heading("Sign in");
    await fill("E-mail address", "ada@example.com");
    await fill("Password", "not the password");
    await click("Sign in");
    await page.getByRole("alert").waitFor();
    await picture("sign-in-wrong");

    provider.accounts.set("eve", { email: "eve@example.com", email_verified: true });
    await page.getByRole("link", { name: "Sign in with Example Corp" }).click();
    await page.locator("input[name=login]").fill("eve");
    await page.locator("input[name=password]").fill("any");
    await page.locator("button[type=submit]").click();
    await page.locator("button[type=submit]").click();
    await page.getByText("for an invitation, then try again").waitFor();
    await picture("refused");
  });

  it("let a person join by an invitation, and change the password", async () => {
    const session = await signedIn();
    const invited = await platform.call(
      "/api/v1/members:invite",
      { email: "grace@example.com" },
      session,
    );
    await context.close();
    await newContext();
    await page.goto(String(invited.json.url));
    await heading("Join acme");
    await picture("invitation");
    await fill("Your name", "Grace");
    await fill("Password", PASSWORD);
    await click("Join acme");
    await heading("acme");
    await click("grace@example.com");
    await page.getByRole("link", { name: "Account" }).click();
    await heading("Your account");
    await picture("account");
    const grace = cookieOf(await platform.signIn("grace@example.com"));
    const token = await platform.createToken(grace, { name: "grace's laptop" });
    await click("Change password");
    await fill("Current password", PASSWORD);
    await fill("New password", `${PASSWORD}, changed`);
    await click("Change password");
    await page.getByText("Your password is changed").waitFor();
    await page.getByText("grace's laptop (acme)").waitFor();
    await picture("password-changed");
    expect((await platform.signIn("grace@example.com", `${PASSWORD}, changed`)).status).toBe(200);
    await open("/account");
    await click("Change password");
    await fill("Current password", `${PASSWORD}, changed`);
    await fill("New password", `${PASSWORD}, again`);
    await page.getByLabel("End my personal tokens, too").check();
    await click("Change password");
    await page.getByText("Personal tokens that ended: 1.").waitFor();
    expect(await platform.whoIs(bearer(token.value))).toBe(401);
    await page.goto(String(invited.json.url));
    await heading("This invitation cannot be used");
  });

  it("tell a person what ended in an account that somebody made before them", async () => {
    const email = "ceo@corp.example";
    const invited = await platform.call("/api/v1/members:invite", { email }, await signedIn());
    await platform.call("/api/v1/auth:acceptInvitation", {
      invitation_code: String(invited.json.url).split("#code=")[1],
      password: PASSWORD,
    });
    provider.accounts.set("ceo", { email, email_verified: true });
    await context.close();
    await newContext();
    await open("/account");
    await page.getByRole("link", { name: "Sign in with Example Corp" }).click();
    await page.locator("input[name=login]").fill("ceo");
    await page.locator("input[name=password]").fill("any");
    await page.locator("button[type=submit]").click();
    await page.locator("button[type=submit]").click();
    await heading("Your account is yours alone now");
    await page.getByText("Somebody else may have used this account before you").waitFor();
    await page.getByText("The password", { exact: true }).waitFor();
    await page.getByText("Sessions: 1", { exact: true }).waitFor();
    await page.getByText("acme (member)").waitFor();
    await picture("account-secured");
    await page.getByRole("link", { name: "Continue" }).click();
    await at("/o/acme/account");
  });

  it("show the reference of the API to everybody, open at the operation that the address names", async () => {
    await open("/reference#TaskService.GetTask");
    await heading("API reference");
    await page.getByText("How long to wait for the next change, at most 60 s.").waitFor();
    const { json } = await platform.call("/docs.json");
    const operations = Object.values(json.paths as object).flatMap(Object.values);
    const shown = page.locator("details.operation");
    expect(await shown.count()).toBe(operations.length);
    expect(await page.locator("details.operation[open]").getAttribute("id")).toBe(
      "TaskService.GetTask",
    );
    await page
      .getByRole("navigation", { name: "Operations" })
      .getByText("Tokens", { exact: true })
      .click();
    await page.waitForURL((url) => url.hash === "#TokenService");
    await picture("reference");
    await fill("Search operations", "delete TOKENS");
    await expect.poll(() => shown.count()).toBe(1);
    await page.waitForURL((url) => url.search === "?search=delete+TOKENS");
    await page.getByText("/api/v1/tokens/{token_id}", { exact: true }).click();
    await page.getByText("token_id (path)").waitFor();
    await fill("Search operations", "<script>");
    await page.getByText("No operation has this text.").waitFor();
  });

  it("fit a phone, and the dark", async () => {
    await context.close();
    const contrast = await readFile(new URL("../console/contrast.js", import.meta.url), "utf8");
    await newContext({ viewport: { width: 360, height: 740 }, colorScheme: "dark" });
    await signedIn();
    await open("/reference");
    await heading("API reference");
    const [width, background] = await page.evaluate<[number, string]>(
      "[document.documentElement.scrollWidth, getComputedStyle(document.body).backgroundColor]",
    );
    expect(width).toBe(360);
    expect(background).toBe("rgb(20, 20, 24)");
    expect(await page.evaluate(contrast)).toEqual([]);
    await picture("phone-reference");
  });
});
