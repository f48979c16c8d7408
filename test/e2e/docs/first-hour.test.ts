/**
 * The first hour of a user, with the package as it would be published: packed, installed into an
 * empty folder, and a project of `tessera init` tested, served, called, deployed and protected.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { skipped as noSandbox } from "../../pool/sandbox/available.ts";
import { pythonMissing, ROOT } from "../clients/python-environment.ts";
import { World } from "../hosting/world.ts";
import { InstalledProgram } from "./installed-program.ts";

const run = promisify(execFile);

/** Packages come from the registry. */
const INSTALL_MS = 600_000;

const NEW_REPOSITORY = ".git";

let folder: string;
let tarball: string;
/** Where the package is installed and nothing else. */
let home: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "tessera-first-hour-"));
  // `npm ci` has built dist/, which other tests use: packing must not build it anew.
  const pack = ["pack", "--ignore-scripts", "--json", "--pack-destination", folder];
  const { stdout } = await run("npm", pack, { cwd: ROOT, maxBuffer: 64 * 1024 ** 2 });
  const [{ filename }] = JSON.parse(stdout);
  tarball = join(folder, filename);
  home = join(folder, "home");
  mkdirSync(home);
  await run("npm", ["install", "--no-audit", tarball, "zod"], { cwd: home });
}, INSTALL_MS);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The installed command, in a folder. */
function tessera(args: readonly string[], cwd: string, env: Record<string, string> = {}) {
  return run(
    process.execPath,
    [join(home, "node_modules/tessera-platform/bin/tessera.js"), ...args],
    {
      cwd,
      env: { ...process.env, ...env },
    },
  );
}

async function post(url: string, body: object, headers: Record<string, string> = {}) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.includes("json");
  return { status: response.status, body: isJson ? JSON.parse(text) : text };
}

describe("the package", () => {
  it("has what it needs and nothing else, and installs without building anything", () => {
    const installed = join(home, "node_modules/tessera-platform");
    for (const path of ["dist/main.js", "gen/tessera/v1/task_pb.js", "README.md", "LICENSE"]) {
      expect(existsSync(join(installed, path)), path).toBe(true);
    }
    for (const path of ["src", "test", "scripts", "bench", "docs", "node_modules"]) {
      expect(existsSync(join(installed, path)), path).toBe(false);
    }
    expect(existsSync(join(home, "node_modules/vite"))).toBe(false);
    const { publishConfig } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    expect(publishConfig).toEqual({ access: "public", provenance: true });
  });

  it("serves the service of the README, in an empty folder", async () => {
    const readme = readFileSync(join(ROOT, "README.md"), "utf8");
    const blocks = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, text = ""]) => text);
    writeFileSync(
      join(home, "service.ts"),
      blocks.find((text) => text.includes("Summarizer")) ?? "",
    );
    await using served = await InstalledProgram.serve(home, ["service.ts"]);
    const one = await post(`${served.url}/summarize`, { text: "One. Two. Three.", sentences: 2 });
    expect(one).toEqual({ status: 200, body: "One. Two." });
    const many = await post(`${served.url}/summarize_batch`, { texts: ["One. Two."] });
    expect(many).toEqual({ status: 200, body: ["One. Two."] });
  });

  it("makes a project only where nothing is in the way, and leaves nothing half done", async () => {
    const full = join(folder, "full");
    mkdirSync(full);
    writeFileSync(join(full, "notes.txt"), "mine");
    await expect(tessera(["init", full], folder)).rejects.toMatchObject({
      code: 2,
      stderr: `tessera: the folder ${full} is not empty: it has notes.txt\nname an empty or new folder: tessera init <folder>\n`,
    });
    const repository = join(folder, "repository");
    mkdirSync(join(repository, NEW_REPOSITORY), { recursive: true });
    await tessera(["init"], repository);
    expect(existsSync(join(repository, ".gitignore"))).toBe(true);
    const file = join(full, "notes.txt");
    await expect(tessera(["init", join(file, "below")], folder)).rejects.toMatchObject({ code: 2 });
    expect(readFileSync(file, "utf8")).toBe("mine");
  });
});

/** What says where packages of Python come from, for the node that installs them. */
function indexVariables(): Record<string, string> {
  const found = Object.entries(process.env).filter(([name]) =>
    /^(?:PIP|UV|SSL)_|^HOME$/.test(name),
  );
  return Object.fromEntries(found.map(([name, value = ""]) => [name, value]));
}

/** Serves a project, calls it, deploys it to a platform, protects it there, and calls with a token. */
async function serveAndDeploy(
  project: string,
  {
    service,
    env = {},
    flags = [],
  }: { service: string; env?: Record<string, string>; flags?: string[] },
): Promise<void> {
  {
    await using served = await InstalledProgram.serve(project, [service], { env, home });
    const one = await post(`${served.url}/count`, { text: "The moon, pulls the sea!" });
    expect(one).toEqual({ status: 200, body: 5 });
    const many = await post(`${served.url}/count_all`, { texts: ["one", "one two"] });
    expect(many).toEqual({ status: 200, body: [1, 2] });
  }
  await using world = await World.start({ env: indexVariables() });
  const { value: deployer } = await world.platform.createToken(world.cookie);
  const login = {
    SERVICE_CLOUD_API_ENDPOINT: world.platform.url,
    SERVICE_CLOUD_API_KEY: deployer,
  };
  await tessera(["deploy", ".", "--authorization", ...flags], project, { ...env, ...login });
  const { value: caller } = await world.platform.createToken(world.cookie, {
    access: ["protected_endpoint"],
    deployments: ["greeter"],
  });
  const body = { text: "one two" };
  const host = { "tessera-deployment": "acme/greeter" };
  const url = `${world.platform.url}/count`;
  expect((await post(url, body, host)).status).toBe(401);
  const called = await post(url, body, { ...host, authorization: `Bearer ${caller}` });
  expect(called).toEqual({ status: 200, body: 2 });
}

it(
  "makes a project in TypeScript that tests, type-checks, serves and deploys as it says",
  async () => {
    const { stdout } = await tessera(["init", "greeter"], folder);
    expect(stdout).toContain("  cd greeter\n  npm install\n  npm test\n  npm run types\n");
    expect(stdout).toContain("says how to set it up");
    const project = join(folder, "greeter");
    expect(readFileSync(join(project, "service.ts"), "utf8")).toContain('name: "greeter"');
    // Until it is published, from the file.
    await run("npm", ["install", "--no-audit", tarball], { cwd: project });
    await run("npm", ["test"], { cwd: project });
    await run("npm", ["run", "types"], { cwd: project });
    await serveAndDeploy(project, { service: "service.ts" });
  },
  INSTALL_MS,
);

const withoutPython = leftOut(pythonMissing) || noSandbox;

it.skipIf(withoutPython)(
  `makes a project in Python that tests, type-checks, serves and deploys as it says${withoutPython}`,
  async () => {
    const project = join(folder, "python", "greeter");
    const { stdout } = await tessera(["init", project, "--language", "python"], folder);
    expect(stdout).toContain("  python3 -m venv .venv\n  .venv/bin/pip install -e '.[test]'\n");
    await run("python3", ["-m", "venv", ".venv"], { cwd: project });
    const bin = join(project, ".venv/bin");
    // Until it is published, from the sources.
    await run(join(bin, "pip"), ["install", "-q", join(ROOT, "clients/python")], { cwd: project });
    await run(join(bin, "pip"), ["install", "-q", "-e", ".[test]"], { cwd: project });
    await run(join(bin, "pytest"), [], { cwd: project });
    await run(join(bin, "mypy"), ["."], { cwd: project });
    const PATH = [bin, process.env.PATH].join(delimiter);
    await serveAndDeploy(project, { service: "service.py", env: { PATH } });
  },
  INSTALL_MS,
);
