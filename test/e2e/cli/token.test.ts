import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bearer, PASSWORD } from "../start/platform.ts";
import { Person } from "./person.ts";
import { json, type Scene, scene } from "./platform-person.ts";

const ID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/;
const VALUE = /^tsr[pom]_[0-9A-Za-z]{36}\n$/;

let at: Scene;
beforeAll(async () => {
  at = await scene();
  await at.ada.run(["deployment", "create", "summarizer", "--authorization"]);
});
afterAll(() => at[Symbol.asyncDispose]());

const run = (...args: readonly string[]) => at.ada.run(["token", ...args]);

/** Makes a token; answers what `--output json` said. */
async function make(name: string, ...args: readonly string[]) {
  const outcome = await run("create", name, "--developer-operations", ...args, "-o", "json");
  expect(outcome).toMatchObject({ code: 0, stderr: "" });
  const { token, value } = json(outcome) as { token: Record<string, unknown>; value: string };
  return { id: String(token.token_id), token, value };
}

describe("token create", () => {
  it("writes the value alone to standard output, and the rest beside it", async () => {
    const { code, stdout, stderr } = await run("create", "laptop", "--developer-operations");
    expect(code).toBe(0);
    expect(stdout).toMatch(VALUE);
    expect(stderr).toMatch(/^Made token laptop \([0-9a-f-]{36}\)\. Its value:/);
    expect(stderr).toContain("it cannot be shown again");
    expect(stderr).toContain(
      "Log in with it: tessera cloud login --api-token - --endpoint http://",
    );
    expect(stderr).not.toContain(stdout.trim());
    expect(await at.platform.whoIs(bearer(stdout.trim()))).toBe(200);
  });

  it("says what to do next with a token for a deployment", async () => {
    const { url } = json(await at.ada.run(["deployment", "get", "summarizer", "--json"]));
    const next = async (...args: string[]) => {
      const given = ["token", "create", "next", ...args, "--password-stdin"];
      const made = await at.ada.run(given, { input: PASSWORD });
      return made.stderr.trim().split("\n").at(-1);
    };
    expect(await next("--deployment", "summarizer")).toBe(
      `Call with it, as TESSERA_TOKEN: tessera call <endpoint> --url ${url}`,
    );
    expect(await next("--worker", "--deployment", "summarizer")).toBe(
      `Join a machine with it, as TESSERA_WORKER_TOKEN: tessera worker --join ${at.platform.url} --deployment summarizer`,
    );
  });

  it("shows a person at a terminal the command that logs in, which works", async () => {
    const { stdout, stderr } = await at.ada.run(
      ["token", "create", "desk", "--developer-operations"],
      { answers: [] },
    );
    const [, command = ""] = /Log in with it: tessera (.*)\n/.exec(stderr) ?? [];
    expect(command).toContain(stdout.trim());
    using other = new Person();
    expect(await other.run(command.split(" "))).toMatchObject({
      code: 0,
      stdout: "Logged in to organization acme as ada@example.com\n",
    });
  });

  it("takes everything that a token has, with the password for what the login's token lacks", async () => {
    const args = [
      ...["token", "create", "shop", "--kind", "organization", "--description", "for the shop"],
      ...["--deployment", "summarizer", "--allow-network", "10.0.0.0/8"],
      ...["--allow-network", "2001:db8::/32", "--expires", "2099-01-31", "--not-before", "1d"],
      ...["--output", "json"],
    ];
    const denied = await at.ada.run(args);
    expect(denied).toMatchObject({ code: 1, stdout: "" });
    expect(denied.stderr).toContain("protected endpoint access");
    expect(denied.stderr).toContain("add --password-stdin");
    const outcome = await at.ada.run([...args, "--password-stdin"], { input: PASSWORD });
    expect(outcome).toMatchObject({ code: 0, stderr: "" });
    expect(json(outcome).token).toMatchObject({
      organization: "acme",
      kind: "organization",
      name: "shop",
      description: "for the shop",
      access: ["protected_endpoint"],
      all_deployments: false,
      deployments: ["summarizer"],
      allowed_networks: ["10.0.0.0/8", "2001:db8::/32"],
      expires_at: "2099-01-31T00:00:00Z",
      not_before: expect.any(String),
      created_by: expect.stringContaining("ada@example.com"),
    });
  });

  it("expires after 90 days unless told otherwise", async () => {
    const { token } = await make("default expiry");
    const days = (Date.parse(String(token.expires_at)) - Date.now()) / 86_400_000;
    expect(days).toBeGreaterThan(89.9);
    expect(days).toBeLessThanOrEqual(90);
  });

  it("expires with the login's token where that ends sooner, and beyond it asks for the password", async () => {
    using person = new Person();
    const expiresAt = new Date(Date.now() + 86_400_000).toISOString();
    const { value } = await at.platform.createToken(at.adaCookie, { expires_at: expiresAt });
    await at.logIn(person, value);
    const args = ["token", "create", "short", "--developer-operations", "-o", "json"];
    const { token } = json(await person.run(args)) as { token: Record<string, unknown> };
    expect(Date.parse(String(token.expires_at))).toBe(Date.parse(expiresAt));
    const longer = await person.run([...args, "--expires", "2d"]);
    expect(longer).toMatchObject({ code: 1, stdout: "" });
    expect(longer.stderr).toContain("choose an earlier one");
    const asked = [...args, "--expires", "2d", "--password-stdin"];
    expect(await person.run(asked, { input: PASSWORD })).toMatchObject({ code: 0 });
  });

  it.each([
    ["an unknown deployment", ["--deployment", "nowhere"], 4, /nowhere/],
    [
      "an expiry in the past",
      ["--developer-operations", "--expires", "2020-01-01"],
      2,
      /--expires must/,
    ],
    ["an empty network", ["--developer-operations", "--allow-network", "x"], 2, /--allow-network/],
    ["access without deployments", ["--protected-endpoint"], 2, /--deployment .*--all-deployments/],
    ["monitoring that is not enabled", ["--kind", "organization", "--monitoring"], 1, /operator/],
  ])("says what the server refuses: %s", async (_, args, code, words) => {
    const outcome = await at.ada.run(["token", "create", "refused", ...args, "--password-stdin"], {
      input: PASSWORD,
    });
    expect(outcome).toMatchObject({ code, stdout: "" });
    expect(outcome.stderr).toMatch(/^tessera: /);
    expect(outcome.stderr).toMatch(words);
  });
});

describe("token list and get", () => {
  it("show tokens in columns, newest first, without values", async () => {
    const { id, value } = await make("listed");
    const { stdout } = await run("list");
    const [titles = "", first = ""] = stdout.split("\n");
    expect(titles).toMatch(/^ID +NAME +KIND +ACCESS +VALUE +EXPIRES +LAST USED$/);
    expect(first).toMatch(new RegExp(`^${id} +listed +personal +developer operations +tsrp_`));
    expect(stdout).not.toContain(value);
    const one = await run("get", "listed");
    expect(one.stdout).toMatch(new RegExp(`^id +${id}\nname +listed\n`));
    expect((await run("get", id)).stdout).toBe(one.stdout);
  });

  it("read as many pages as there are", async () => {
    const all = json(await run("list", "-o", "json")).tokens as { token_id: string }[];
    const two = json(await run("list", "--limit", "2", "-o", "json"));
    expect(two.tokens).toEqual(all.slice(0, 2));
    expect(two.next_page_token).not.toBe("");
    const rest = await run("list", "--page-token", String(two.next_page_token), "-o", "json");
    expect(json(rest)).toEqual({ tokens: all.slice(2), next_page_token: "" });
    expect((await run("list", "--limit", "2")).stderr).toContain("raise --limit");
  });

  it("filter by kind", async () => {
    await make("of acme", "--kind", "organization");
    const { tokens } = json(await run("list", "--kind", "organization", "-o", "json"));
    const kinds = (tokens as { kind: string }[]).map(({ kind }) => kind);
    expect(new Set(kinds)).toEqual(new Set(["organization"]));
  });

  it("say that a token is not there", async () => {
    expect(await run("get", "no such token")).toMatchObject({ code: 4, stdout: "" });
    const id = "01990000-0000-7000-8000-000000000000";
    expect(await run("get", id)).toMatchObject({ code: 4, stdout: "" });
  });

  it("ask for an id where a name is not enough", async () => {
    const [one, two] = [await make("twin"), await make("twin")];
    const { code, stderr } = await run("get", "twin");
    expect(code).toBe(2);
    expect(stderr).toContain(one.id);
    expect(stderr).toContain(two.id);
  });
});

describe("token update", () => {
  it("changes what it is told and nothing else", async () => {
    const { token } = await make("before", "--description", "kept");
    const outcome = await run(
      ...["update", "before", "--name", "after", "--expires", "2099-01-31"],
      ...["--allow-network", "10.0.0.0/8", "--output", "json"],
    );
    expect(json(outcome)).toEqual({
      ...token,
      name: "after",
      expires_at: "2099-01-31T00:00:00Z",
      allowed_networks: ["10.0.0.0/8"],
      version: 2,
      updated_at: expect.any(String),
    });
    const lifted = json(await run("update", "after", "--allow-network", "any", "-o", "json"));
    expect(lifted).toMatchObject({ allowed_networks: [], description: "kept", version: 3 });
  });

  it("lifts a beginning that lies ahead", async () => {
    const { value } = await make("later", "--not-before", "1d");
    expect(await at.platform.whoIs(bearer(value))).toBe(401);
    expect(await run("update", "later", "--not-before", "now")).toMatchObject({ code: 0 });
    expect(await at.platform.whoIs(bearer(value))).toBe(200);
  });
});

describe("token rotate", () => {
  it("asks for the password where the token is worth more than the login's", async () => {
    const answers = [
      ["E-mail address", "\r"],
      ["Password", `${PASSWORD}\r`],
    ] as const;
    const args = ["token", "create", "caller", "--all-deployments"];
    expect(await at.ada.run(args, { answers })).toMatchObject({ code: 0 });
    const { code, stdout, stderr } = await at.ada.run(["token", "rotate", "caller"], { answers });
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(VALUE) });
    expect(stderr).toContain("with your password, you may");
    expect(stderr).not.toContain(PASSWORD);
  });

  it("shows the new value, and the old one ends unless it has a grace", async () => {
    const { value } = await make("rotated");
    const { code, stdout, stderr } = await run("rotate", "rotated");
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringContaining("has a new value"),
    });
    expect(stdout).toMatch(VALUE);
    expect(await at.platform.whoIs(bearer(value))).toBe(401);
    expect(await run("rotate", "rotated", "--grace", "1h")).toMatchObject({ code: 0 });
    expect(await at.platform.whoIs(bearer(stdout.trim()))).toBe(200);
    expect((await run("get", "rotated")).stdout).toMatch(/old value +valid until/);
  });

  it("keeps the login that is by the token", async () => {
    using person = new Person();
    const { value } = await make("own");
    await at.logIn(person, value);
    const { stdout, stderr } = await person.run(["token", "rotate", "own"]);
    expect(stderr).toContain("Your login is by this token, and has the new value now.");
    const context = json(await person.run(["cloud", "current-context"]));
    expect(context.api_token).toBe(stdout.trim());
    expect(await person.run(["token", "get", "own"])).toMatchObject({ code: 0 });
  });
});

describe("token reveal", () => {
  it("signs in with the password for that one call", async () => {
    const { value } = await make("shown", "--kind", "organization");
    const { code, stdout, stderr } = await at.ada.run(["token", "reveal", "shown"], {
      answers: [
        ["E-mail address", "\r"],
        ["Password", `${PASSWORD}\r`],
      ],
    });
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${value}\n` });
    expect(stderr).not.toContain(PASSWORD);
  });

  it("takes the password from standard input", async () => {
    const { value } = await make("piped", "--kind", "organization");
    const args = ["token", "reveal", "piped", "--password-stdin", "--output", "json"];
    const outcome = await at.ada.run(args, { input: `${PASSWORD}\n` });
    expect(outcome).toMatchObject({ code: 0, stderr: "" });
    expect(json(outcome)).toEqual({ value });
  });

  it("refuses a wrong password, a personal token, and to guess without a terminal", async () => {
    await make("unseen", "--kind", "organization");
    const wrong = await at.ada.run(["token", "reveal", "unseen", "--password-stdin"], {
      input: "wrong",
    });
    expect(wrong).toMatchObject({ code: 3, stdout: "" });
    await make("mine");
    const personal = await at.ada.run(["token", "reveal", "mine", "--password-stdin"], {
      input: PASSWORD,
    });
    expect(personal).toMatchObject({ code: 1, stdout: "" });
    const silent = await run("reveal", "unseen");
    expect(silent).toMatchObject({ code: 2, stdout: "" });
    expect(silent.stderr).toContain("--password-stdin");
  });
});

describe("token delete", () => {
  it("asks, and stops the value at once", async () => {
    const { id, value } = await make("gone");
    const question = ["Delete token gone", "n\r"] as const;
    const no = await at.ada.run(["token", "delete", "gone"], { answers: [question] });
    expect(no).toMatchObject({ code: 1 });
    expect(no.stderr).toContain("nothing was changed");
    expect(await at.platform.whoIs(bearer(value))).toBe(200);
    const yes = await at.ada.run(["token", "delete", "gone"], {
      answers: [["Delete token gone", "y\r"]],
    });
    expect(yes.stderr).toContain(`Deleted token gone (${id})\n`);
    expect(await at.platform.whoIs(bearer(value))).toBe(401);
  });

  it("is refused without a terminal unless --yes says so", async () => {
    await make("kept");
    const refused = await run("delete", "kept");
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain("add --yes");
    expect(await run("delete", "kept", "--yes")).toMatchObject({ code: 0 });
  });

  it("ends the login that is by the token", async () => {
    using person = new Person();
    await at.logIn(person, (await make("last")).value);
    const { code, stderr } = await person.run(["token", "delete", "last", "--yes"]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/Deleted token last .*\nYou are logged out/);
    expect(existsSync(person.contextFile)).toBe(false);
  });
});

it("says that the token has ended, and how to get another", async () => {
  using person = new Person();
  const { id, value } = await make("ended");
  await at.logIn(person, value);
  await run("delete", id, "--yes");
  const { code, stdout, stderr } = await person.run(["token", "list"]);
  expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
  expect(stderr).toMatch(/log in again: tessera cloud login\n$/);
  expect(stderr).not.toMatch(ID);
});
