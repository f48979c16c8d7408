import { once } from "node:events";
import { writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ask } from "../../storage/postgres/databases.ts";
import { LOOPBACKS, Program, run } from "../cli/program.ts";
import { newPostgres } from "./databases.ts";
import { Folder } from "./platform.ts";

const EMAIL = "ada@example.com";

/** `tessera start` in a folder, once it has greeted. */
async function startProgram(folder: Folder, env: Record<string, string> = {}) {
  const program = new Program(["start", "--port", "0"], { cwd: folder.path, env });
  const [, url = ""] = await program.says("stdout", / runs on (http:\/\/\S+)\n[\s\S]*Ctrl-C stops/);
  return { program, url: url.replace("localhost", "127.0.0.1") };
}

async function post(url: string, body: object, headers: Record<string, string> = {}) {
  const res = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  expect(res.status).toBe(200);
  return { cookie: res.headers.getSetCookie()[0]?.split(";")[0] ?? "", json: await res.json() };
}

describe("tessera start", () => {
  it("goes from an empty folder to a login with the commands as printed", async () => {
    using folder = new Folder();
    const { program, url } = await startProgram(folder);
    await using _running = program;
    expect(program.stdout).toMatch(/\/setup#code=\w{43}\n/);
    const [, printed = ""] = /tessera(?:-platform)? (admin setup .*)\n/.exec(program.stdout) ?? [];
    const args = printed.replace("you@example.com", EMAIL).split(" ");
    const env = { XDG_CONFIG_HOME: join(folder.path, "config") };
    const cli = (...given: string[]) => run(given, { cwd: folder.path, env });

    const setup = await cli(...args);
    expect(setup.stderr).toContain(`Made the organization acme with its admin ${EMAIL}`);
    const at = url.replace("127.0.0.1", "localhost");
    expect(setup.stderr).toMatch(new RegExp(`cloud login --endpoint ${at}\\n`));
    const password = setup.stdout.trim();
    expect(password).toMatch(/^\w{20}$/);

    const session = await post(`${url}/api/v1/auth:signIn`, { email: EMAIL, password });
    const token = await post(
      `${url}/api/v1/tokens`,
      {
        name: "laptop",
        access: ["developer_operations"],
        expires_at: new Date(Date.now() + 60_000).toISOString(),
      },
      { cookie: session.cookie },
    );
    const { value } = token.json as { value: string };
    const login = await cli("cloud", "login", "--api-token", value, "--endpoint", url);
    expect(login.code, login.stderr).toBe(0);
    expect(login.stdout + login.stderr).toContain(`Logged in to organization acme as ${EMAIL}`);
    const context = await cli("cloud", "current-context");
    expect(JSON.parse(context.stdout)).toEqual({ endpoint: url, api_token: value });
    const made = await cli("token", "create", "build-server", "--developer-operations");
    expect(made.stdout, made.stderr).toMatch(/tsrp_\w{35}/);

    const invited = await run(["member", "invite", "colleague@example.com", "--password-stdin"], {
      cwd: folder.path,
      env,
      input: password,
    });
    expect(invited.stdout, invited.stderr).toContain("/invitation#code=");

    const asking = await cli("org", "ask-for-monitoring");
    expect(asking.stdout, asking.stderr).toMatch(
      new RegExp(`^monitoring tokens +asked for by ${EMAIL}`, "m"),
    );
    const listed = await cli("admin", "organizations", "--output", "json");
    expect(JSON.parse(listed.stdout)).toMatchObject([
      { name: "acme", members: 1, monitoring_enabled: false, monitoring_asked_by: EMAIL },
    ]);
    const enabled = await cli("admin", "monitoring", "enable", "--organization", "acme");
    expect(enabled.stderr).toContain("enabled for acme");
    const admin = ["--admin", EMAIL];
    const globex = await cli("admin", "create-organization", "globex", ...admin);
    expect(globex.stderr).toContain(`Made the organization globex with its admin ${EMAIL}`);
    const links = ["admin", "invitation-links", "enable", "--organization", "globex"];
    expect((await cli(...links)).stderr).toContain("Links of invitations are enabled for globex");
    expect((await cli("admin", "organizations")).stdout).toMatch(/^acme .* yes +yes +2/m);
    expect((await cli("admin", "organizations")).stdout).toMatch(/^globex .* no +yes +2/m);
    expect((await cli("admin", "rotate-keys")).stderr).toContain("Made new keys");

    const ended = await program.stop();
    expect(ended.code).toBe(0);
    for (const secret of [value, password, session.cookie.split("=")[1] ?? ""]) {
      expect(ended.stdout + ended.stderr).not.toContain(secret);
    }
  });

  it("after SIGTERM serves on for the delay, unready; a second one ends it at once", async () => {
    using folder = new Folder();
    const { program, url } = await startProgram(folder, { TESSERA_DRAIN_DELAY: "60s" });
    await using _running = program;
    const status = async (path: string) => (await fetch(url + path)).status;
    expect(await status("/readyz")).toBe(200);
    program.send("SIGTERM");
    await program.says("stderr", /SIGTERM: serving for 60 s while \/readyz is 503, then taking no/);
    expect(await status("/readyz")).toBe(503);
    expect(await status("/livez")).toBe(200);
    expect(await status("/docs.json")).toBe(200);
    expect((await program.stop("SIGTERM")).code).toBe(1);
  });

  it("says nothing of a setup on a platform that is set up", async () => {
    using folder = new Folder();
    const setup = await run(["admin", "setup", "--organization", "acme", "--email", EMAIL], {
      cwd: folder.path,
    });
    expect(setup.code, setup.stderr).toBe(0);
    const { program } = await startProgram(folder);
    await using _running = program;
    expect(program.stdout).not.toContain("setup");
    expect(program.stdout).toContain(join(folder.path, ".tessera", "tessera.db"));
  });

  it("shows the address of the database without its password", async () => {
    using folder = new Folder();
    const database = await newPostgres();
    const { program } = await startProgram(folder, { DATABASE_URL: database });
    await using _running = program;
    const { host, username, password, pathname } = new URL(database);
    expect(program.stdout).toContain(`postgres://${username}@${host}${pathname}\n`);
    expect(program.stdout).not.toContain(password);
  });

  it.each([
    ["what is no database", "mysql://me:hidden@host/db", "DATABASE_URL takes the path", 2],
    ["what is no address", "postgres://me:hidden@:x/db", "not a valid address", 2],
    ["where nothing listens", "postgres://me:hidden@127.0.0.1:1/db", "nothing listens there", 1],
    ["a folder not there", "/nowhere/at/all.db", "the folder /nowhere/at does not exist", 1],
  ])("says what is wrong with DATABASE_URL: %s", async (_what, database, message, code) => {
    using folder = new Folder();
    const env = { DATABASE_URL: database, TESSERA_DATABASE_WAIT: "0s" };
    const ended = await run(["start"], { cwd: folder.path, env });
    expect(ended.code).toBe(code);
    expect(ended.stderr).toContain(message);
    expect(ended.stderr).not.toContain("hidden");
    expect(ended.stderr.trim().split("\n")).toHaveLength(1);
  });

  it("says when the database was written by a newer version", async () => {
    using folder = new Folder();
    const database = await newPostgres();
    const first = await startProgram(folder, { DATABASE_URL: database });
    await first.program.stop();
    await ask(database, "UPDATE tessera.schema_version SET version = 1000");
    const env = { DATABASE_URL: database };
    const ended = await run(["start"], { cwd: folder.path, env });
    expect(ended.stderr).toContain("run a newer version of tessera");
    const admin = await run(["admin", "organizations"], { cwd: folder.path, env });
    expect(admin.stderr).toContain("run a newer version of tessera");
  });

  it("says where everything is, once it is set up how to log in, and nothing of calls", {
    timeout: 60_000,
  }, async () => {
    using folder = new Folder();
    const args = ["--organization", "acme", "--email", EMAIL];
    expect(await run(["admin", "setup", ...args], { cwd: folder.path })).toMatchObject({ code: 0 });
    const { program, url } = await startProgram(folder);
    await using _running = program;
    const pages = [...program.stdout.matchAll(/^ {2}(console|docs|reference) +(\S+)/gm)];
    expect(pages.map(([, name]) => name)).toEqual(["console", "docs", "reference"]);
    for (const [, , page = ""] of pages) {
      expect((await fetch(page.replace("localhost", "127.0.0.1"))).status).toBe(200);
    }
    expect(program.stdout).toMatch(/tessera(?:-platform)? cloud login --endpoint http:/);
    expect(program.stdout).not.toContain("/setup#code=");
    await fetch(`${url}/livez`);
    const { stderr } = await program.stop("SIGINT");
    expect(stderr).not.toContain("/livez");
    expect(stderr).not.toContain("schema");
  });

  it("logs calls where it is asked to", { timeout: 60_000 }, async () => {
    using folder = new Folder();
    const { program, url } = await startProgram(folder, { TESSERA_ACCESS_LOG: "on" });
    await using _running = program;
    await fetch(`${url}/livez?token=hunter2`);
    await program.says("stderr", /"msg":"GET \/livez 200 /);
    const { stderr } = await program.stop("SIGINT");
    expect(stderr).not.toContain("hunter2");
  });

  it.each(LOOPBACKS)("says when the port is taken on %s", async (host) => {
    using folder = new Folder();
    const other = createServer().listen(0, host);
    await once(other, "listening");
    const port = String((other.address() as AddressInfo).port);
    const ended = await run(["start", "--port", port], { cwd: folder.path });
    other.close();
    expect(ended.code).toBe(1);
    expect(ended.stderr).toContain(
      `cannot listen on ${host === "::1" ? "[::1]" : host}:${port}: another program is using it`,
    );
  });

  it.each(LOOPBACKS)("leaves its port on %s to nobody, and names where it is", async (host) => {
    using folder = new Folder();
    const args = ["start", "--port", "0"];
    await using program = new Program(args, { cwd: folder.path });
    const [, port = ""] = await program.says("stdout", / runs on http:\/\/localhost:(\d+)\n/);
    const worker = createServer().listen(Number(port), host);
    await expect(once(worker, "listening")).rejects.toThrow("EADDRINUSE");
    const url = `http://${host === "::1" ? "[::1]" : host}:${port}`;
    expect((await fetch(`${url}/livez`)).status).toBe(200);
  });

  it("names the address that it was told to listen on", async () => {
    using folder = new Folder();
    const args = ["start", "--port", "0", "--host", "127.0.0.1"];
    await using program = new Program(args, { cwd: folder.path });
    await program.says("stdout", / runs on http:\/\/127\.0\.0\.1:\d+\n/);
    await program.says("stdout", / http:\/\/127\.0\.0\.1:\d+\/setup#code=/);
    await program.says("stderr", /use --host localhost/);
  });

  it("reads tessera.json beside it", async () => {
    using folder = new Folder();
    writeFileSync(join(folder.path, "tessera.json"), '{"port": "none"}');
    const ended = await run(["start"], { cwd: folder.path });
    expect(ended.stderr).toContain("port in tessera.json must be a whole number");
  });
});
