import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Person } from "./person.ts";

const TOKEN = "tsrp_abcdefghijklmnopqrstuvwxyz0123456789";
const ENDPOINT = "https://tessera.example.com";
const CURRENT = ["cloud", "current-context"];

let person: Person;
beforeEach(() => {
  person = new Person();
});
afterEach(() => person[Symbol.dispose]());

function keep(text: string, mode = 0o600): void {
  mkdirSync(join(person.home, "tessera"), { recursive: true, mode: 0o700 });
  writeFileSync(person.contextFile, text);
  chmodSync(person.contextFile, mode);
}

function login(endpoint = ENDPOINT, token = TOKEN): string {
  return JSON.stringify({ endpoint, api_token: token });
}

describe("the current context", () => {
  it("is the login's, as JSON", async () => {
    keep(login());
    const { code, stdout, stderr } = await person.run(CURRENT);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(JSON.parse(stdout)).toEqual({ endpoint: ENDPOINT, api_token: TOKEN });
  });

  it("is missing where nobody has logged in, and says how to", async () => {
    expect(await person.run(CURRENT)).toEqual({
      code: 3,
      stdout: "",
      stderr: "tessera: you are not logged in\nlog in: tessera cloud login\n",
    });
  });

  it("is the environment's where that has one, whatever the login is", async () => {
    keep("broken", 0o644);
    const { code, stdout } = await person.run(CURRENT, {
      env: { SERVICE_CLOUD_API_KEY: TOKEN, SERVICE_CLOUD_API_ENDPOINT: "http://other:3000/" },
    });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ endpoint: "http://other:3000", api_token: TOKEN });
  });

  it.each([
    ["SERVICE_CLOUD_API_KEY", TOKEN, "SERVICE_CLOUD_API_ENDPOINT"],
    ["SERVICE_CLOUD_API_ENDPOINT", ENDPOINT, "SERVICE_CLOUD_API_KEY"],
  ])("is refused with %s alone, and names what is missing", async (name, value, missing) => {
    keep(login());
    for (const env of [{ [name]: value }, { [name]: value, [missing]: "" }]) {
      const { code, stdout, stderr } = await person.run(CURRENT, { env });
      expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
      expect(stderr).toBe(`tessera: ${name} is set, but ${missing} is not: set both, or neither\n`);
    }
  });

  it("is refused when the environment has what is no URL or no token", async () => {
    const env = { SERVICE_CLOUD_API_KEY: "two words", SERVICE_CLOUD_API_ENDPOINT: ENDPOINT };
    const token = await person.run(CURRENT, { env });
    expect(token.stderr).toMatch(/^tessera: SERVICE_CLOUD_API_KEY is not a token/);
    expect(token.stderr).not.toContain("two words");
    const url = await person.run(CURRENT, {
      env: { SERVICE_CLOUD_API_KEY: TOKEN, SERVICE_CLOUD_API_ENDPOINT: "ftp://x" },
    });
    expect(url.stderr).toMatch(/^tessera: SERVICE_CLOUD_API_ENDPOINT is not a URL/);
  });
});

describe("a context file", () => {
  it.each([0o644, 0o640, 0o604, 0o660])(
    "that others can read is refused, with what to do: mode %o",
    async (mode) => {
      keep(login(), mode);
      const { code, stdout, stderr } = await person.run(CURRENT);
      expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
      expect(stderr).toContain("others on this machine can read it");
      expect(stderr).toContain(`chmod 600 ${person.contextFile}`);
      expect(stderr).not.toContain(TOKEN);
    },
  );

  it.each([
    ["is empty", ""],
    ["is cut off", `{"endpoint": "${ENDPOINT}", "api_token": "${TOKEN}`],
    ["has no token", JSON.stringify({ endpoint: ENDPOINT })],
    ["has no endpoint", JSON.stringify({ api_token: TOKEN })],
    ["has a token that no header can carry", login(ENDPOINT, `${TOKEN}\r\nx: y`)],
    ["holds something else", "null"],
    ["holds a list", `["${TOKEN}"]`],
    ["is much too large", " ".repeat(100_000) + login()],
  ])("that %s is refused, without showing what is in it", async (_, text) => {
    keep(text);
    const { code, stdout, stderr } = await person.run(CURRENT);
    expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
    expect(stderr).toBe(
      `tessera: ${person.contextFile} is broken: it is not what tessera cloud login wrote\nlog in again, which replaces it: tessera cloud login\n`,
    );
  });

  it("that is a folder is refused", async () => {
    mkdirSync(person.contextFile, { recursive: true });
    chmodSync(person.contextFile, 0o700);
    const { code, stderr } = await person.run(CURRENT);
    expect(code).toBe(3);
    expect(stderr).toContain("cannot be read: it is a folder");
  });

  it("is forgotten by a logout even when it is broken", async () => {
    keep("{", 0o644);
    expect(await person.run(["cloud", "logout"])).toMatchObject({
      code: 0,
      stderr: "Logged out\n",
    });
    expect(existsSync(person.contextFile)).toBe(false);
    expect(await person.run(["cloud", "logout"])).toMatchObject({
      code: 0,
      stderr: "You were not logged in\n",
    });
  });
});

describe("a login", () => {
  it("keeps nothing when the server cannot be asked", async () => {
    const args = ["cloud", "login", "--endpoint", "http://127.0.0.1:1", "--api-token", TOKEN];
    const { code, stderr } = await person.run(args);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^tessera: the server cannot be reached: nothing listens there\n/);
    expect(readdirSync(person.home)).toEqual([]);
  });

  it.each([
    ["--endpoint", "not a url"],
    ["--endpoint", "https://me:secret@host"],
    ["--endpoint", "https://host/?x=1"],
    ["--endpoint", "file:///etc"],
  ])("is refused without a request: %s %s", async (option, value) => {
    const { code, stderr } = await person.run(["cloud", "login", option, value, "--device"]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^tessera: --endpoint /);
    expect(stderr).not.toContain("secret");
  });

  it("is refused without a terminal when something is missing", async () => {
    const endpoint = await person.run(["cloud", "login", "--api-token", TOKEN]);
    expect(endpoint).toMatchObject({ code: 2 });
    expect(endpoint.stderr).toContain("--endpoint is missing");
    const way = await person.run(["cloud", "login", "--endpoint", ENDPOINT]);
    expect(way).toMatchObject({ code: 2 });
    expect(way.stderr).toContain("--api-token -, --browser or --device");
  });

  it("is refused with two ways at once", async () => {
    const args = ["cloud", "login", "--endpoint", ENDPOINT, "--device", "--api-token", TOKEN];
    const { code, stderr } = await person.run(args);
    expect(code).toBe(2);
    expect(stderr).toContain("give one");
  });

  it("never shows a token, not even in a mistyped option", async () => {
    const { code, stderr } = await person.run(["cloud", "login", `--api-tokn=${TOKEN}`]);
    expect(code).toBe(2);
    expect(stderr).not.toContain(TOKEN);
  });
});
