import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { bearer } from "../start/platform.ts";
import { Person } from "./person.ts";
import { json, type Scene, scene } from "./platform-person.ts";

let at: Scene;
beforeAll(async () => {
  at = await scene();
});
afterAll(() => at[Symbol.asyncDispose]());

const LOGGED_IN = "Logged in to organization acme as ada@example.com\n";

function newToken(fields: object = {}) {
  return at.platform.createToken(at.adaCookie, fields);
}

describe("cloud login with a token", () => {
  it("keeps it in a file that only its owner can read", async () => {
    using person = new Person();
    const { value } = await newToken();
    const { platform } = at;
    const args = ["cloud", "login", "--endpoint", `${platform.url}/`, "--api-token", value];
    expect(await person.run(args)).toEqual({ code: 0, stdout: LOGGED_IN, stderr: "" });
    expect(statSync(person.contextFile).mode & 0o777).toBe(0o600);
    expect(statSync(join(person.home, "tessera")).mode & 0o777).toBe(0o700);
    expect(readdirSync(join(person.home, "tessera"))).toEqual(["context.json"]);
    expect(json(await person.run(["cloud", "current-context"]))).toEqual({
      endpoint: platform.url,
      api_token: value,
    });
  });

  it("replaces a file that is broken or open to others, and closes the folder", async () => {
    using person = new Person();
    mkdirSync(join(person.home, "tessera"));
    writeFileSync(person.contextFile, "broken");
    chmodSync(person.contextFile, 0o666);
    chmodSync(join(person.home, "tessera"), 0o755);
    expect(await at.logIn(person, (await newToken()).value)).toMatchObject({ code: 0 });
    expect(statSync(person.contextFile).mode & 0o777).toBe(0o600);
    expect(statSync(join(person.home, "tessera")).mode & 0o777).toBe(0o700);
  });

  it("names an organization token by its name", async () => {
    using person = new Person();
    const { value } = await newToken({ name: "ci", kind: "organization" });
    const { stdout } = await at.logIn(person, value);
    expect(stdout).toBe("Logged in to organization acme as token ci\n");
  });

  it("asks for what it is not told, without showing the token", async () => {
    using person = new Person();
    const { value } = await newToken();
    const { code, stdout, stderr } = await person.run(["cloud", "login"], {
      answers: [
        ["Address of the platform", `${at.platform.url}\r`],
        ["How do you want to log in?", "\u001b[B\r"],
        ["Token", `${value}\r`],
      ],
    });
    expect({ code, stdout }).toEqual({ code: 0, stdout: LOGGED_IN });
    expect(stderr).not.toContain(value);
  });

  it("refuses a token that is not valid, and keeps the login before", async () => {
    using person = new Person();
    await at.logIn(person, (await newToken()).value);
    const before = readFileSync(person.contextFile, "utf8");
    const { code, stdout, stderr } = await at.logIn(person, `tsrp_${"x".repeat(36)}`);
    expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
    expect(stderr).toMatch(/^tessera: .*token/);
    expect(readFileSync(person.contextFile, "utf8")).toBe(before);
  });

  it("refuses a token that is for calling deployments only", async () => {
    using person = new Person();
    const fields = { access: ["protected_endpoint"], all_deployments: true };
    const { code, stderr } = await at.logIn(person, (await newToken(fields)).value);
    expect(code).toBe(1);
    expect(stderr).toContain("lacks developer operations access");
  });

  it("says when the environment comes before it", async () => {
    using person = new Person();
    const { value } = await newToken();
    const { code, stderr } = await person.run(
      ["cloud", "login", "--endpoint", at.platform.url, "--api-token", "-"],
      { input: value, env: { SERVICE_CLOUD_API_KEY: "tsrp_x" } },
    );
    expect(code).toBe(0);
    expect(stderr).toContain("come before this login");
  });
});

describe("cloud login with a person's yes", () => {
  it("ends in a token named after the machine, by the browser", async () => {
    using person = new Person();
    const printed = Promise.withResolvers<URL>();
    person.onStderr = (text) => {
      const [url] = /http:\/\/\S+\/cli\/authorize\S+/.exec(text) ?? [];
      if (url !== undefined && text.includes("Waiting")) {
        printed.resolve(new URL(url));
      }
    };
    const { PATH } = process.env;
    process.env.PATH = "";
    onTestFinished(() => {
      process.env.PATH = PATH;
    });
    const login = person.run(["cloud", "login", "--endpoint", at.platform.url, "--browser"]);
    const { pathname, searchParams: asked } = await printed.promise;
    process.env.PATH = PATH;
    expect((await fetch(at.platform.url + pathname)).headers.get("content-type")).toMatch(/html/);
    const { redirectUrl } = await at.client.login.authorizeLogin(
      {
        redirectUri: asked.get("redirect_uri") ?? "",
        codeChallenge: asked.get("code_challenge") ?? "",
        codeChallengeMethod: asked.get("code_challenge_method") ?? "",
        state: asked.get("state") ?? "",
        hostName: asked.get("host_name") ?? "",
      },
      { headers: at.adaCookie },
    );
    expect(await (await fetch(redirectUrl)).text()).toContain("You are logged in");
    expect(await login).toMatchObject({ code: 0, stdout: LOGGED_IN });
    const { stdout } = await person.run(["token", "list"]);
    expect(stdout).toContain(hostname());
  });

  it("ends in a token by a code", async () => {
    using person = new Person();
    let answered: Promise<unknown> | undefined;
    person.onStderr = (text) => {
      const [userCode] = /[A-Z]{4}-[A-Z]{4}/.exec(text) ?? [];
      if (userCode !== undefined) {
        answered ??= at.client.login.answerDeviceLogin(
          { userCode, approve: true },
          { headers: at.adaCookie },
        );
      }
    };
    person.beforeWaitEnds = async () => {
      await answered;
    };
    const login = await person.run(["cloud", "login", "--endpoint", at.platform.url, "--device"]);
    expect(login).toMatchObject({ code: 0, stdout: LOGGED_IN });
    expect(existsSync(person.contextFile)).toBe(true);
  });
});

describe("cloud logout", () => {
  const loggedIn = async (fields: object = {}) => {
    const person = new Person();
    const { value } = await newToken(fields);
    await at.logIn(person, value);
    return { person, value };
  };

  it("forgets the login and leaves the token as it is", async () => {
    const { person, value } = await loggedIn();
    using _ = person;
    expect(await person.run(["cloud", "logout"])).toMatchObject({
      code: 0,
      stderr: "Logged out\n",
    });
    expect(existsSync(person.contextFile)).toBe(false);
    expect(await at.platform.whoIs(bearer(value))).toBe(200);
  });

  it.each([
    ["--revoke", ["cloud", "logout", "--revoke"], {}],
    ["a yes", ["cloud", "logout"], { answers: [["Delete the token too?", "y\r"]] as const }],
  ])("deletes the token with %s", async (_, args, options) => {
    const { person, value } = await loggedIn({ name: "old" });
    using __ = person;
    const { code, stderr } = await person.run(args, options);
    expect(code).toBe(0);
    expect(stderr).toMatch(/Deleted token old\nLogged out\n$/);
    expect(await at.platform.whoIs(bearer(value))).toBe(401);
  });

  it("forgets a login whose token has ended already", async () => {
    const { person } = await loggedIn();
    using _ = person;
    writeFileSync(
      person.contextFile,
      JSON.stringify({ endpoint: at.platform.url, api_token: `tsrp_${"x".repeat(36)}` }),
    );
    expect(await person.run(["cloud", "logout", "--revoke"])).toMatchObject({
      code: 0,
      stderr: "The token was not valid any more\nLogged out\n",
    });
  });

  it("stays logged in when the token cannot be deleted", async () => {
    const { person } = await loggedIn();
    using _ = person;
    writeFileSync(
      person.contextFile,
      JSON.stringify({ endpoint: "http://127.0.0.1:1", api_token: "tsrp_x" }),
    );
    const { code, stderr } = await person.run(["cloud", "logout", "--revoke"]);
    expect(code).toBe(1);
    expect(stderr).toContain("you are still logged in");
    expect(stderr).toContain("--no-revoke");
    expect(existsSync(person.contextFile)).toBe(true);
  });
});
