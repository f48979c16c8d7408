import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { joinedMember } from "../start/member.ts";
import { cookieOf, Folder, PASSWORD, type Platform, start } from "../start/platform.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";

const skipped = leftOut(chromiumMissing);
const EMAIL = "ada@example.com";

/** A state that a program may choose; as JSON it would be another text. */
const STATE = '[1.0,"1e500"]&amp;%5B+';

/** The link of a program that waits on this machine. */
const authorizePath = (hostName: string) =>
  `/cli/authorize?${new URLSearchParams({
    redirect_uri: "http://127.0.0.1:9/callback",
    code_challenge: "a".repeat(43),
    code_challenge_method: "S256",
    state: STATE,
    host_name: hostName,
  })}`;
const HOSTILE = `<script>alert(1)</script>${"\u202e long".repeat(20)}`;

/** Presses Tab until the control with this name has the focus. */
async function tabTo(page: Page, name: string): Promise<void> {
  for (let presses = 0; presses < 40; presses += 1) {
    await page.keyboard.press("Tab");
    const found = await page
      .locator(":focus")
      .and(page.getByLabel(name, { exact: true }).or(page.getByRole("button", { name })))
      .count();
    if (found > 0) {
      return;
    }
  }
  throw new Error(`Tab does not reach ${name}`);
}

describe.skipIf(skipped)(`the pages of people in the console${skipped}`, () => {
  let browser: Browser;
  let folder: Folder;
  let platform: Platform;
  let session: Record<string, string>;
  const opened: ConsoleBrowser[] = [];

  const open = async (options: Parameters<typeof ConsoleBrowser.open>[2] = {}) => {
    const person = await ConsoleBrowser.open(browser, platform, options);
    opened.push(person);
    return person;
  };
  const invite = async (email: string): Promise<string> => {
    const { json } = await platform.call("/api/v1/members:invite", { email }, session);
    return String(json.url).slice(platform.started.url.length);
  };

  beforeAll(async () => {
    browser = await sharedChromium();
    folder = new Folder();
    platform = await start(folder);
  });
  afterAll(async () => {
    await closeContexts();
    await platform?.[Symbol.asyncDispose]();
    folder?.[Symbol.dispose]();
  });
  afterEach(async () => {
    for (const person of opened.splice(0)) {
      await person[Symbol.asyncDispose]();
    }
  });

  it("keep the code of a link out of the address and the history, also for a reload", async () => {
    const person = await open();
    const { page } = person;
    await person.go("/");
    await person.heading("Nobody has set this platform up yet");
    const code = platform.setupCode;
    await person.go(`/setup#code=${code}`);
    await person.heading("Set up this platform");
    await page.waitForURL((url) => url.hash === "");
    await page.reload();
    await person.heading("Set up this platform");
    await person.isSound({ answers: [401] });
    expect(page.url()).not.toContain(code);
    expect(await page.getByLabel("Setup code").count()).toBe(0);
    await person.fill("Organization", "acme");
    await person.fill("E-mail address", EMAIL);
    await person.fill("Password", PASSWORD);
    await person.press("Set up");
    await person.heading("acme");
    await page.goBack();
    expect(page.url()).not.toContain("setup");
    session = cookieOf(await platform.signIn(EMAIL));
  });

  it("ask for the code of the setup if the link had none", async () => {
    const person = await open();
    await person.go("/setup");
    await person.page.getByLabel("Setup code").waitFor();
    await person.isSound();
  });

  it("are worked by keyboard alone, and tell password managers what is what", async () => {
    const person = await open();
    const { page } = person;
    await person.go("/o/acme/tokens");
    await person.heading("Sign in");
    await page.getByLabel("E-mail address").and(page.locator(":focus")).waitFor();
    await page.keyboard.type(EMAIL);
    await tabTo(page, "Password");
    await page.keyboard.type("not the password");
    await page.keyboard.press("Enter");
    await page
      .getByRole("alert")
      .getByText("the e-mail address or the password is not right")
      .waitFor();
    await page.locator(":focus").fill(PASSWORD);
    const expected = { "E-mail address": "username", Password: "current-password" };
    for (const [label, token] of Object.entries(expected)) {
      expect(await page.getByLabel(label, { exact: true }).getAttribute("autocomplete")).toBe(
        token,
      );
    }
    await tabTo(page, "Sign in");
    await page.keyboard.press("Enter");
    await person.heading("API tokens");
  });

  it("lead a session that ended to the sign-in, and back to the same link", async () => {
    const person = await open({ email: EMAIL });
    const { page } = person;
    const path = "/o/acme/tasks?status=failed&error=%5Bno%20memory";
    await person.go(path);
    await person.heading("Tasks");
    const [mine] = (await platform.call("/api/v1/auth/sessions", undefined, session)).json
      .sessions as readonly { session_id: string }[];
    await fetch(`${platform.started.url}/api/v1/auth/sessions/${mine?.session_id}`, {
      method: "DELETE",
      headers: session,
    });
    // A page that is still asking for something leads to the sign-in before anybody clicks.
    await page.evaluate(`document.querySelector("a[href$='/members']")?.click()`);
    await person.heading("Sign in");
    await page.goBack().catch(() => undefined);
    await person.go(path);
    await person.heading("Sign in");
    await person.fill("E-mail address", EMAIL);
    await person.fill("Password", PASSWORD);
    await person.press("Sign in");
    await person.heading("Tasks");
    const { pathname, searchParams } = new URL(page.url());
    expect(pathname).toBe("/o/acme/tasks");
    expect(Object.fromEntries(searchParams)).toEqual({ status: "failed", error: "[no memory" });
  });

  // Every other form of such a link: test/console/safe-path.test.ts.
  it("lead to no other site", async () => {
    const person = await open();
    await person.go(`/sign-in?${new URLSearchParams({ next: "/.//evil.example/" })}`);
    await person.fill("E-mail address", EMAIL);
    await person.fill("Password", PASSWORD);
    await person.press("Sign in");
    await person.heading("acme");
  });

  it("show a person's sessions, and end one and all others", async () => {
    const lost = cookieOf(await platform.signIn(EMAIL));
    const person = await open({ email: EMAIL });
    const { page } = person;
    await person.go("/account");
    await person.heading("Your account");
    await page.getByText("This session").waitFor();
    await person.isSound();
    await person.picture("account");
    expect(await page.getByRole("rowheader", { name: /^Node\.js/ }).count()).toBeGreaterThan(1);
    // The one of this page is first, with its version and when it began.
    const first = page.getByRole("row").nth(1);
    await first.getByText("This session").waitFor();
    await first.getByText(/^ends in 14 d$/).waitFor();
    expect(await first.getByRole("time").first().textContent()).toMatch(/\d\d:\d\d:\d\d$/);
    // This one ends elsewhere: in the menu of the account.
    expect(await page.getByRole("button", { name: "Sign out", exact: true }).count()).toBe(0);
    const ends = page.getByRole("button", { name: /^Sign out Node\.js/ });
    const before = await ends.count();
    await ends.nth(0).click();
    await expect.poll(() => ends.count()).toBe(before - 1);
    expect(await platform.whoIs(lost)).toBe(401);
    const other = cookieOf(await platform.signIn(EMAIL));
    await person.press("Sign out all others");
    await expect.poll(() => ends.count()).toBe(0);
    expect(await platform.whoIs(other)).toBe(401);
    await person.isSound();
    session = cookieOf(await platform.signIn(EMAIL));
    await page.getByRole("link", { name: "My tokens in acme" }).click();
    await person.heading("API tokens");
  });

  it("give a person another name, which others see at once", async () => {
    const person = await open({ email: EMAIL });
    const { page } = person;
    await person.go("/account");
    await person.fill("Name", HOSTILE.slice(0, 100));
    await person.press("Save name");
    await page.getByText("Your name is saved").waitFor();
    await person.isSound();
    await person.go("/o/acme/members");
    await page.getByRole("rowheader", { name: /^<script>alert\(1\)/ }).waitFor();
    await person.isSound();
    await person.go("/account");
    await person.fill("Name", "Ada");
    await page.keyboard.press("Enter");
    await page.getByText("Your name is saved").waitFor();
    await page.reload();
    await expect.poll(() => page.getByLabel("Name", { exact: true }).inputValue()).toBe("Ada");
  });

  it("are asked before a role changes, and told what it means", async () => {
    await joinedMember(platform, session, { email: "grace@example.com" });
    const person = await open({ email: EMAIL });
    const { page } = person;
    await page.setViewportSize({ width: 1280, height: 800 });
    await person.go("/o/acme/members");
    const role = page.getByLabel("Role of grace@example.com");
    await role.selectOption("admin");
    await page.getByText("Make grace@example.com an admin?").waitFor();
    await person.isSound();
    await person.press("Cancel");
    expect(await role.inputValue()).toBe("ROLE_MEMBER");
    await role.selectOption("admin");
    await person.press("Make admin");
    await page.getByText("grace@example.com is an admin now").waitFor();
    await expect.poll(() => role.inputValue()).toBe("ROLE_ADMIN");
  });

  it("give a program its state back, character by character", async () => {
    const person = await open({ email: EMAIL });
    const { page } = person;
    const called = page.waitForRequest(/127\.0\.0\.1:9/);
    await person.go(authorizePath("laptop"));
    await person.press("Allow");
    const { searchParams } = new URL((await called).url());
    expect(Object.fromEntries(searchParams)).toEqual({ state: STATE, code: expect.any(String) });
  });

  it("are sound, in light and dark, wide and narrow", async () => {
    const invitation = await invite(`someone-${"long".repeat(12)}@example.com`);
    const anyone = await open();
    // Nobody is signed in, and the last one is not found.
    const answers = [401, 404];
    for (const [path, heading] of [
      ["/sign-in", "Sign in"],
      ["/sign-in?refused=stale", "Sign in"],
      [invitation, "Join acme"],
      ["/invitation#code=none", "This invitation cannot be used"],
      ["/reference?search=task", "API reference"],
    ] as const) {
      await anyone.go(path);
      await anyone.heading(heading);
      await anyone.isSoundInAllWindows(heading, { answers });
    }
    const device = await platform.call("/api/v1/login:startDevice", { host_name: "server-7" });
    const person = await open({ email: EMAIL });
    for (const [path, heading] of [
      ["/account-secured?password=true&sessions=3", "Your account is yours alone now"],
      [authorizePath(HOSTILE), "Sign in on the command line"],
      ["/cli/authorize", "This link cannot be used"],
      [`/device?user_code=${device.json.user_code}`, "Sign in on another machine"],
    ] as const) {
      await person.go(path);
      await person.heading(heading);
      await person.isSoundInAllWindows(heading);
    }
    await person.press("Continue");
    await person.page.getByText("server-7").waitFor();
    await person.isSoundInAllWindows("device-ask");
    await person.press("Deny");
    await person.heading("Denied");
    await person.isSoundInAllWindows("device-denied");
  });

  it("follow one link of an invitation after the other in the same tab", async () => {
    const [first, second] = [await invite("one@example.com"), await invite("two@example.com")];
    const person = await open();
    for (const [path, email] of [
      [first, "one@example.com"],
      [second, "two@example.com"],
    ] as const) {
      await person.go(path);
      await person.page.getByText(email, { exact: true }).waitFor();
    }
    await person.isSound({ answers: [401] });
  });

  it("make, change and delete budgets by keyboard alone, and tell who was second what it is now", async () => {
    const person = await open({ email: EMAIL });
    const { page } = person;
    const { keyboard } = page;
    await person.go("/o/acme/usage");
    const budgets = page.getByRole("region", { name: "Budgets" });
    await budgets.getByText("A budget bounds what is used").waitFor();
    await tabTo(page, "Create budget");
    await keyboard.press("Enter");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").waitFor();
    await keyboard.type("Ünit");
    await tabTo(page, "Measure");
    await keyboard.type("gpu_seconds");
    await tabTo(page, "Amount");
    await keyboard.type("0");
    await keyboard.press("Enter");
    await dialog.getByText("must be 1 to 63 lower case letters").waitFor();
    await person.isSound({ answers: [400] });
    await keyboard.press("ControlOrMeta+A");
    await keyboard.type("gpus");
    await keyboard.press("Enter");
    await budgets.getByText("0 s of 0 s (GPU time) a month, spent").waitFor();
    await person.isSoundInAllWindows("usage-budgets", { answers: [400] });
    await page.setViewportSize({ width: 1280, height: 800 });

    await tabTo(page, "Actions for gpus");
    await keyboard.press("Enter");
    await page.getByRole("menuitem", { name: "Edit" }).waitFor();
    await keyboard.press("Enter");
    await dialog.getByLabel("Amount, of gpu_seconds").waitFor();
    // Somebody else is first.
    const path = "/tessera.v1.UsageService/UpdateBudget";
    const budget = { name: "gpus", amount: 60 };
    expect((await platform.call(path, { organization: "acme", budget }, session)).status).toBe(200);
    await keyboard.press("ControlOrMeta+A");
    await keyboard.type("90");
    await keyboard.press("Enter");
    await dialog.getByText("It is now: 60 s (GPU time) a month").waitFor();
    await person.isSound({ answers: [400, 409] });
    await keyboard.press("Enter");
    await budgets.getByText("0 s of 90 s (GPU time) a month").waitFor();

    await tabTo(page, "Actions for gpus");
    await keyboard.press("Enter");
    await page.getByRole("menuitem", { name: "Edit" }).waitFor();
    await keyboard.press("End");
    await keyboard.press("Enter");
    await dialog.getByText("Nothing is refused because of it").waitFor();
    await tabTo(page, "Delete");
    await keyboard.press("Enter");
    await budgets.getByText("A budget bounds what is used").waitFor();
  });

  it("show an operator the numbers of the platform and what is set, and make an organization", async () => {
    const person = await open({ email: EMAIL });
    const { page } = person;
    await person.go("/o/acme/operator");
    await person.heading("Platform");
    const numbers = page.getByRole("region", { name: "State of the platform" });
    await numbers.getByText("1 of 1").waitFor();
    await numbers.getByText("Tasks queued").waitFor();
    await numbers
      .locator("div", { hasText: /^Workers\d+ of \d+$/ })
      .locator(".share-bar")
      .waitFor();
    await numbers.locator("div", { hasText: /^Disk[\d.]+( [KMG]iB)? of [\d.]+ GiB$/ }).waitFor();
    const set = page.getByRole("region", { name: "Settings that are set" });
    await set.getByRole("row", { name: /^TESSERA_LOG_LEVEL.* silent$/ }).waitFor();
    await page.getByText(/^\d+ settings with defaults$/).click();
    const others = page.getByRole("region", { name: "Settings with defaults" });
    await others.getByRole("row", { name: /^TESSERA_SESSION_LIFETIME.* 14d$/ }).waitFor();
    await person.isSoundInAllWindows("operator");
    await page.getByRole("button", { name: "Monitoring tokens of acme: off" }).press("Enter");
    const how = page.getByRole("dialog", { name: "Monitoring tokens of acme" });
    await how.getByText("admin monitoring enable --organization acme").waitFor();
    await person.isSound();
    await page.keyboard.press("Escape");
    await how.waitFor({ state: "detached" });
    await person.press("Create organization");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name", { exact: true }).fill("acme");
    await dialog.getByLabel("Name", { exact: true }).press("Enter");
    await dialog.getByText("the name acme is taken").waitFor();
    await dialog.getByLabel("Name", { exact: true }).fill("globex");
    await dialog.getByRole("button", { name: "Create" }).click();
    await page.getByText("Created globex").waitFor();
    await page.getByRole("link", { name: "globex" }).waitFor();
    await person.isSound({ answers: [409] });
  });

  it("load the sign-in with less than 120 kB on the wire", async () => {
    const person = await open();
    const { page } = person;
    const client = await page.context().newCDPSession(page);
    await client.send("Network.enable");
    let bytes = 0;
    client.on("Network.loadingFinished", ({ encodedDataLength }) => {
      bytes += encodedDataLength;
    });
    await person.go("/sign-in");
    await person.heading("Sign in");
    expect(bytes).toBeGreaterThan(10_000);
    expect(bytes).toBeLessThan(120_000);
  });
});
