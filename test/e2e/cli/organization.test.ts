import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SmtpServer } from "../../server/mail/smtp-server.ts";
import { bearer, cookieOf, PASSWORD } from "../start/platform.ts";
import { Person } from "./person.ts";
import { json, type Scene, scene } from "./platform-person.ts";

let at: Scene;
beforeAll(async () => {
  at = await scene();
});
afterAll(() => at[Symbol.asyncDispose]());

const run = (...args: readonly string[]) => at.ada.run(args);

/** The same for what asks for the password. */
const runAsPerson = (...args: readonly string[]) =>
  at.ada.run([...args, "--password-stdin"], { input: PASSWORD });

/** Invites somebody, who joins and logs in. */
async function join(email: string): Promise<{ readonly person: Person; readonly value: string }> {
  const { stdout } = await runAsPerson("member", "invite", email);
  const code = new URL(stdout.trim()).hash.replace("#code=", "");
  const answer = await at.platform.call("/api/v1/auth:acceptInvitation", {
    invitation_code: code,
    display_name: "Somebody",
    password: PASSWORD,
  });
  expect(answer.status, JSON.stringify(answer.json)).toBe(200);
  const { value } = await at.platform.createToken(cookieOf(answer));
  const person = new Person();
  await at.logIn(person, value);
  return { person, value };
}

describe("org", () => {
  it("shows the organization, and changes what it is told", async () => {
    expect((await run("org", "list")).stdout).toMatch(
      /^NAME +DISPLAY NAME +ROLE +CREATED\nacme +- +admin +\d{4}-/,
    );
    const changed = await run("org", "update", "--display-name", "Acme Ltd", "--no-reveal");
    expect(changed.stdout).toMatch(/^name +acme\ndisplay name +Acme Ltd\nyour role +admin\n/);
    expect(changed.stdout).toMatch(/values shown again +off\n/);
    const read = json(await run("org", "get", "acme", "--output", "json"));
    expect(read).toMatchObject({ name: "acme", display_name: "Acme Ltd", reveal_enabled: false });
    expect(await run("org", "update", "--reveal")).toMatchObject({ code: 0 });
  });

  it("makes another one for a person who gives their password", async () => {
    const args = ["org", "create", "globex", "--password-stdin"];
    const made = await at.ada.run(args, { input: PASSWORD });
    expect(made).toMatchObject({ code: 0 });
    expect(made.stdout).toMatch(/^name +globex\n/);
    expect(made.stderr).toContain("--organization globex");
    const again = await at.ada.run(args, { input: PASSWORD });
    expect(again).toMatchObject({ code: 1, stdout: "" });
    // The login's token is acme's: globex is another world.
    expect(await run("org", "get", "globex")).toMatchObject({ code: 4 });
    expect(await run("token", "list", "--organization", "globex")).toMatchObject({ code: 4 });
  });
});

describe("member", () => {
  it("invites, lists and withdraws", async () => {
    const args = ["member", "invite", "bob@example.com", "--role", "admin"];
    const byToken = await run(...args);
    expect(byToken).toMatchObject({ code: 1, stdout: "" });
    expect(byToken.stderr).toContain("--password-stdin");
    const invited = await runAsPerson(...args);
    expect(invited).toMatchObject({ code: 0 });
    expect(invited.stdout).toMatch(/^http:\/\/\S+\n$/);
    expect(invited.stderr).toContain("Invited bob@example.com until 2");
    const { stdout } = await run("member", "invitations", "list");
    expect(stdout).toMatch(/\nbob@example\.com +admin +ada@example\.com +2/);
    const withdraw = ["member", "invitations", "withdraw", "Bob@example.com"];
    expect(await run(...withdraw)).toMatchObject({ code: 0 });
    expect(await run(...withdraw)).toMatchObject({ code: 4 });
  });

  it("says so when the link went by mail, and shows none", async () => {
    await using server = await SmtpServer.listen();
    const env = { TESSERA_SMTP_URL: server.url, TESSERA_MAIL_FROM: "tessera@example.com" };
    await using mailing = await scene({ env });
    const args = ["member", "invite", "Bob@example.com", "--password-stdin"];
    const invited = await mailing.ada.run(args, { input: PASSWORD });
    expect(invited).toMatchObject({ code: 0, stdout: "" });
    expect(invited.stderr).toContain("The link was sent by mail to bob@example.com");
    expect(server.mails).toMatchObject([{ to: ["bob@example.com"] }]);
    const asJson = [...args, "--output", "json"];
    expect(json(await mailing.ada.run(asJson, { input: PASSWORD }))).toMatchObject({
      mailed: true,
      invitation: { email: "bob@example.com" },
    });
    server.answers = { RCPT: "550 no" };
    const failed = await mailing.ada.run(args, { input: PASSWORD });
    expect(failed).toMatchObject({ code: 1, stdout: "" });
    expect(failed.stderr).toContain("invite them again to send another mail");
  });

  it("changes roles, and keeps an admin", async () => {
    const { person } = await join("carol@example.com");
    using _ = person;
    expect((await run("member", "list")).stdout).toMatch(
      /^E-MAIL +NAME +ROLE +JOINED +ID\nada@example\.com +- +admin .*\ncarol@example\.com +Somebody +member /,
    );
    expect(await person.run(["member", "set-role", "carol@example.com", "admin"])).toMatchObject({
      code: 1,
      stdout: "",
    });
    const promoted = await runAsPerson("member", "set-role", "carol@example.com", "admin");
    expect(promoted.stdout).toMatch(/role +admin\n/);
    await run("member", "set-role", "carol@example.com", "member");
    const last = await run("member", "set-role", "ada@example.com", "member");
    expect(last).toMatchObject({ code: 1, stdout: "" });
    expect(last.stderr).toContain("make somebody else an admin first");
  });

  it("removes somebody after asking, and their tokens end", async () => {
    const { person, value } = await join("dave@example.com");
    using _ = person;
    expect(await run("member", "remove", "dave@example.com")).toMatchObject({ code: 2 });
    const removed = await at.ada.run(["member", "remove", "dave@example.com"], {
      answers: [["Remove dave@example.com?", "y\r"]],
    });
    expect(removed.stderr).toMatch(/Removed dave@example\.com\n$/);
    expect(await at.platform.whoIs(bearer(value))).toBe(401);
    expect(await run("member", "remove", "dave@example.com", "--yes")).toMatchObject({ code: 4 });
  });

  it("lets a person leave with their password", async () => {
    const { person, value } = await join("erin@example.com");
    using _ = person;
    const args = ["member", "leave", "--organization", "acme", "--email", "erin@example.com"];
    const left = await person.run([...args, "--yes", "--password-stdin"], { input: PASSWORD });
    expect(left).toMatchObject({ code: 0 });
    expect(left.stderr).toMatch(/^Left acme\nYou are logged out/);
    expect(existsSync(person.contextFile)).toBe(false);
    expect(await at.platform.whoIs(bearer(value))).toBe(401);
    const last = await at.ada.run(["member", "leave", "--yes", "--password-stdin"], {
      input: PASSWORD,
    });
    expect(last).toMatchObject({ code: 1 });
  });
});

describe("deployment", () => {
  it("is made, listed, changed and deleted by name", async () => {
    const made = await run("deployment", "create", "digits");
    expect(made.stdout).toMatch(
      /^name +digits\norganization +acme\nstatus +stopped: nothing has been deployed yet\nurl +http:\S+\nauthorization +off\nrevision +none\n/,
    );
    expect(made.stderr).toContain("Anyone who can reach it may call it");
    expect(await run("deployment", "create", "digits")).toMatchObject({ code: 1, stdout: "" });
    const changed = await run("deployment", "update", "digits", "--authorization", "-o", "json");
    expect(json(changed)).toMatchObject({ name: "digits", authorization: true });
    expect((await run("deployment", "list")).stdout).toMatch(
      /^NAME +STATUS +REVISION +WORKERS +AUTHORIZATION +CHANGED +URL\ndigits +stopped +none +0 of 1\.\.2 +on +/,
    );
    expect((await run("deployment", "get", "digits")).stdout).toMatch(/authorization +on\n/);
    const opening = ["deployment", "update", "digits", "--no-authorization"];
    const refused = await run(...opening);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(/protected endpoint access for digits.*\n.*--password-stdin\n$/);
    const opened = await runAsPerson(...opening);
    expect(opened.stdout).toMatch(/authorization +off\n/);
    expect(await run("deployment", "delete", "digits")).toMatchObject({ code: 2 });
    expect(await run("deployment", "delete", "digits", "--yes")).toMatchObject({
      code: 0,
      stderr: "Deleted deployment digits\n",
    });
    expect(await run("deployment", "get", "digits")).toMatchObject({ code: 4, stdout: "" });
  });
});

describe("audit list", () => {
  it("shows what happened, newest first", async () => {
    await run("deployment", "create", "watched");
    const { stdout } = await run("audit", "list", "--limit", "1");
    expect(stdout).toMatch(
      /^TIME +ACTION +WHO +WHAT +FROM +DETAILS\n2\S+ \S+Z +deployment\.create +\S.* +watched +127\.0\.0\.1/,
    );
  });

  it("shows what a filter chooses", async () => {
    await run("deployment", "create", "looked-at");
    const flags = ["--action", "deployment", "--subject", "looked-at", "--newer-than", "1h"];
    const { stdout } = await run("audit", "list", ...flags);
    expect(stdout.trim().split("\n")).toHaveLength(2);
    expect(stdout).toMatch(/deployment\.create +\S.* +looked-at/);
    expect((await run("audit", "list", "--actor", "nobody")).stdout).not.toContain("looked-at");
  });

  it("is for admins", async () => {
    const { person } = await join("frank@example.com");
    using _ = person;
    const { code, stdout, stderr } = await person.run(["audit", "list"]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain("tessera member list shows who is an admin");
  });
});
