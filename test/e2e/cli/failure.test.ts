import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { describeFailure } from "../../../src/cli/describe.ts";
import { AuthService, TokenService } from "../../../src/client/index.ts";
import { problem, type Reason } from "../../../src/errors.ts";
import { type Answering, answering, answeringCalls } from "./answering.ts";
import { Person } from "./person.ts";

const TOKEN = "tsrp_abcdefghijklmnopqrstuvwxyz0123456789";

let person: Person;
beforeEach(() => {
  person = new Person();
});
afterEach(() => person[Symbol.dispose]());

function list(url: string, args: readonly string[] = []) {
  const env = { SERVICE_CLOUD_API_KEY: TOKEN, SERVICE_CLOUD_API_ENDPOINT: url };
  return person.run(["token", "list", ...args], { env });
}

function page(status: number, type: string, body: string): Promise<Answering> {
  return answering((_req, res) => {
    res.writeHead(status, { "content-type": type }).end(body);
  });
}

describe("what is no answer of a platform", () => {
  it.each([200, 404, 502])("is told apart: a web page with %d", async (status) => {
    await using server = await page(status, "text/html; charset=utf-8", "<h1>Hello</h1>");
    const { code, stdout, stderr } = await list(server.url);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^tessera: a web page came back instead of an answer/);
    expect(stderr).toMatch(/check the endpoint: /);
    expect(stderr).not.toContain("<h1>");
  });

  it.each([
    [404, "application/json", '{"error":"no such page"}'],
    [200, "application/json", '{"hello":"world"}'],
    [404, "text/plain", "404 page not found"],
  ])("is told apart: %d %s %s", async (status, type, body) => {
    await using server = await page(status, type, body);
    const { code, stderr } = await list(server.url);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^tessera: what came back is not a Tessera platform's answer/);
  });

  it("is told apart: a redirect, with where it leads", async () => {
    await using server = await answering((_req, res) => {
      res.writeHead(301, { location: "https://elsewhere.example.com/" }).end();
    });
    const { code, stderr } = await list(server.url);
    expect(code).toBe(1);
    expect(stderr).toContain("the server sends callers on to https://elsewhere.example.com/");
  });

  it("is told apart: a port where nothing listens", async () => {
    const { code, stderr } = await list("http://127.0.0.1:1");
    expect(code).toBe(1);
    expect(stderr).toMatch(/^tessera: the server cannot be reached: nothing listens there\n/);
  });

  it("is told apart: a name that is no host", async () => {
    const { code, stderr } = await list("http://no-such-host.invalid");
    expect(code).toBe(1);
    expect(stderr).toMatch(/^tessera: the server cannot be reached: .* (?:name|host)/);
  });

  it("is told apart: https:// to a server that speaks http://", async () => {
    await using server = await page(200, "text/plain", "");
    const { code, stderr } = await list(server.url.replace("http:", "https:"));
    expect(code).toBe(1);
    expect(stderr).toContain("is it http:// rather than https://?");
  });

  it("is told apart: a connection that is cut", async () => {
    const server = createServer((socket) => socket.once("data", () => socket.destroy()));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { code, stderr } = await list(
      `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    );
    server.close();
    expect(code).toBe(1);
    expect(stderr).toMatch(/^tessera: the server cannot be reached: the connection was cut\n/);
  });
});

describe("what the server says", () => {
  const refusing = (err: unknown): Promise<Answering> =>
    answeringCalls(({ service }) => {
      service(TokenService, {
        listTokens: () => {
          throw err;
        },
      });
      service(AuthService, {});
    });

  it.each<[Reason, number, RegExp]>([
    ["TOKEN_INVALID", 3, /log in again: tessera cloud login/],
    ["TOKEN_NOT_FOUND", 4, /^tessera: the server's words\n$/],
    ["ADMIN_REQUIRED", 1, /tessera member list shows who is an admin/],
    ["INTERNAL", 1, /^tessera: the server's words\n$/],
  ])("is shown in its words, with a hint and an exit code: %s", async (reason, code, words) => {
    await using server = await refusing(problem(reason, "the server's words"));
    const ended = await list(server.url);
    expect(ended).toMatchObject({ code, stdout: "" });
    expect(ended.stderr).toMatch(/^tessera: the server's words\n/);
    expect(ended.stderr).toMatch(words);
  });

  it("is followed by the fields that it does not name itself, and the time to wait", async () => {
    const violations = [{ field: "name", description: "must have 1 to 100 characters" }];
    const options = { violations, retryAfterMs: 1500 };
    await using server = await refusing(problem("REQUEST_INVALID", "bad request", options));
    expect((await list(server.url)).stderr).toBe(
      "tessera: bad request; name: must have 1 to 100 characters\ntry again in 2 s\n",
    );
  });

  it("cannot steer the terminal, and shows no token", async () => {
    await using server = await refusing(problem("INTERNAL", `\u001b[2J${TOKEN}\r\nok`));
    expect((await list(server.url)).stderr).toBe("tessera: tsrp_… ok\n");
  });
});

describe("a wrong command line", () => {
  it.each([
    [["token"]],
    [["token", "creat"]],
    [["token", "create"]],
    [["token", "create", "x"]],
    [["token", "create", "x", "--developer-operations", "--expires", "soon"]],
    [["token", "create", "x", "--kind", "mine"]],
    [["token", "list", "--limit", "0"]],
    [["token", "list", "--output", "xml"]],
    [["token", "update", "x"]],
    [["token", "rotate", "0199a000-0000-7000-8000-000000000000", "--grace", "x"]],
    [["org", "update", "acme"]],
    [["deployment", "update", "x"]],
    [["member", "set-role", "ada@example.com", "owner"]],
    [["deployment", "delete", "x"]],
  ])("ends with 2 before anything is asked: %s", async ([...args]) => {
    const env = {
      SERVICE_CLOUD_API_KEY: TOKEN,
      SERVICE_CLOUD_API_ENDPOINT: "http://127.0.0.1:1",
    };
    const { code, stdout, stderr } = await person.run(args, { env });
    expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: "", stderr: expect.any(String) });
    expect(stderr).not.toBe("");
  });
});

it("is an interruption, with nothing to say, when a question was left with Ctrl-C", () => {
  const err = Object.assign(new Error("User force closed the prompt"), { name: "ExitPromptError" });
  expect(describeFailure(err)).toEqual({ message: undefined, hint: undefined, exitCode: 130 });
});
