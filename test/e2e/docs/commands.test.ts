/**
 * The commands of the documents run as they stand in the page. That each block runs somewhere, or
 * is in a list that says why not, test/docs/commands.test.ts holds; of those that do not run,
 * the commands and flags of `tessera` exist.
 */
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { stripped } from "../../stripped.ts";
import { Program } from "../cli/program.ts";
import { ROOT } from "../clients/python-environment.ts";
import { World } from "../hosting/world.ts";
import { Folder } from "../start/platform.ts";
import { documentedBlocks } from "./blocks.ts";
import { HERE } from "./commands.ts";

/** Their answers are JSON, which shells read with it. */
const jqMissing = existsSync("/usr/bin/jq")
  ? undefined
  : "there is no jq here (apt-get install jq)";
const skipped = leftOut(jqMissing);

const BLOCKS = documentedBlocks();

/** The block of a page that begins so. Throws where there is none. */
function block(page: string, start: string): string {
  const found = BLOCKS.find((one) => one.page === page && one.text.startsWith(start));
  if (found === undefined) {
    throw new Error(`${page} has no commands that begin with ${start}`);
  }
  return found.text;
}

/** What the summarizer makes of three. */
const SENTENCE = /^(?:One|Two|Three)\.$/;

describe("the commands of the documents", () => {
  const words = BLOCKS.flatMap(({ text }) =>
    [
      ...text
        .replaceAll("\\\n", " ")
        .matchAll(/(?<![\w/:.-])tessera(?! tessera )((?: (?!charts\/)[a-z][a-z-]*)+)([^\n|;&)]*)/g),
    ].map(([, command = "", rest = ""]) => `${command} ${rest}`.replace(/#.*/, "").trim()),
  );

  it.each([...new Set(words)])("name flags that are there: tessera %s", async (line) => {
    // The help is of the command that the words name, whatever stands after it.
    const [named = ""] = line.split(/ (?=-)/);
    await using program = new Program([...named.split(" "), "--help"]);
    const { code, stdout } = await program.ended;
    expect(code).toBe(0);
    for (const flag of line.match(/(?<= )--[a-z-]+/g) ?? []) {
      expect(stdout).toMatch(new RegExp(`${flag}\\b`));
    }
  });
});

describe.skipIf(skipped)(`the commands of the examples${skipped}`, () => {
  /** All that are run of a page, one after the other in one shell, in a copy of what they read. */
  async function runPage(name: string, files: string): Promise<string> {
    using folder = new Folder();
    const page = `examples/${name}/README.md`;
    cpSync(join(ROOT, "examples", name, files), join(folder.path, "examples", name, files), {
      recursive: true,
    });
    const { program, url } = await Program.serve([join(ROOT, "examples", name, "service.ts")]);
    await using _ = program;
    const commands = HERE.filter(([one]) => one === page).map(([, start]) => block(page, start));
    const script = commands
      .join("\necho\n")
      .replaceAll("localhost:3000", new URL(url).host)
      // A reader looks again until it has ended.
      .replace(/get\?task_id=\$id"/, 'get?task_id=$id&wait=30"');
    const { stdout } = await promisify(execFile)("bash", ["-euo", "pipefail", "-c", script], {
      cwd: folder.path,
      env: { PATH: process.env.PATH, HOME: folder.path, no_proxy: "*" },
    });
    return stdout;
  }

  it("summarize a text, an article and all of them", { timeout: 60_000 }, async () => {
    const said = await runPage("summarizer", "articles");
    expect(said).toMatch(/^The tide follows the moon\.|^The tide is high\.|^Boats wait/);
    expect(said).toContain('"task_id":');
    expect(said).toMatch(/\[".+"\]\s*$/s);
  });

  it("read digits, make a contact sheet, and count", { timeout: 60_000 }, async () => {
    const said = await runPage("digits", "images");
    expect(said).toMatch(/^\{"digit":7,/);
    expect(said).toContain('"filename":"9-c.png"');
    expect(said).toMatch(/^digits_\w+\{.*\} \d/m);
  });
});

describe("commands that run as they stand there", () => {
  const folder = new Folder();
  let world: World;
  let env: Record<string, string>;
  let served: Awaited<ReturnType<typeof Program.serve>>;

  beforeAll(async () => {
    const bin = join(folder.path, "bin");
    mkdirSync(bin, { recursive: true });
    const entry = stripped("test/e2e/cli/entry.ts");
    const own = `exec "${process.execPath}" "${entry}" "$@"\n`;
    writeFileSync(join(bin, "tessera"), `#!/bin/sh\n${own}`, { mode: 0o755 });
    writeFileSync(
      join(bin, "npx"),
      `#!/bin/sh\nname=$1\nshift\ncase $name in tessera) ${own.trim()};; esac\nexec "${ROOT}/node_modules/.bin/$name" "$@"\n`,
      { mode: 0o755 },
    );
    symlinkSync(join(ROOT, "examples"), join(folder.path, "examples"));
    world = await World.start();
    const { value } = await world.platform.createToken(world.cookie, {
      access: ["developer_operations", "protected_endpoint"],
      all_deployments: true,
    });
    env = {
      PATH: `${bin}:${process.env.PATH}`,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? "",
      HOME: folder.path,
      no_proxy: "*",
      SERVICE_CLOUD_API_ENDPOINT: world.platform.url,
      SERVICE_CLOUD_API_KEY: value,
      TESSERA_DATA: world.folder.data,
      TESSERA_BACKUP_PASSPHRASE: "a long enough passphrase",
    };
    served = await Program.serve([join(ROOT, "examples/summarizer/service.ts")]);
  });
  afterAll(async () => {
    await served?.program[Symbol.asyncDispose]();
    await world?.[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  const run = async (commands: string, more: Record<string, string> = {}): Promise<string> => {
    const { stdout } = await promisify(execFile)("bash", ["-euo", "pipefail", "-c", commands], {
      cwd: ROOT,
      env: { ...env, ...more },
    });
    return stdout;
  };
  const onServer = (text: string) => text.replaceAll("http://localhost:3000", served.url);
  const onPlatform = (text: string) =>
    text.replaceAll("localhost:3000", `localhost:${world.platform.started.port}`);

  it("call a service over HTTP, over gRPC and from the command line", async () => {
    const [call = "", submit = "", get = ""] = onServer(
      block("README.md", "curl http://localhost:3000/summarize"),
    ).split(/\n(?=curl )/);
    expect(await run(call)).toMatch(SENTENCE);
    const { task_id: id } = JSON.parse(await run(submit));
    expect(JSON.parse(await run(get.replace("…", id)))).toEqual(["One. Two. Three."]);
    const called = await run(onServer(block("docs/calls.md", "npx buf curl")));
    expect(JSON.parse(called)).toEqual({ value: expect.stringMatching(SENTENCE) });
    const said = await run(onServer(block("docs/calls.md", "npx tessera call summarize")));
    expect(said).toContain("One. Two.");
  });

  it("deploy a service, call it, and follow its tasks", { timeout: 120_000 }, async () => {
    const deployed = await run(block("docs/deploy.md", "npx tessera deploy examples"));
    expect(deployed).toContain("summarizer");
    const calls = block("docs/deploy.md", "curl http://summarizer").split(/\n(?=curl )/);
    expect(calls).toHaveLength(2);
    for (const call of calls) {
      expect(await run(onPlatform(call).replace("curl ", "curl -sSf "))).toMatch(SENTENCE);
    }
    const [app = "", submit = "", status = "", get = ""] = onPlatform(
      block("docs/deploy.md", "app=http://summarizer"),
    )
      .trim()
      .split("\n")
      .map((line) => line.replace("curl ", "curl -sSf "));
    const { task_id: id } = JSON.parse(await run(`${app}\n${submit}`));
    expect(await run(`${app}\n${status.replace("…", id)}`)).toContain(id);
    expect(JSON.parse(await run(`${app}\n${get.replace("…", id)}`))).toEqual(["One. Two. Three."]);
  });

  it("back up, verify, restore, and migrate what was restored", async () => {
    const commands = block("docs/backup.md", "tessera admin backup")
      .replaceAll(/\/backups\/tessera-(?:2026-11-23|\$\(date \+%F\))\.tar/g, `${folder.path}/b.tar`)
      .replace("/var/lib/tessera-restored", join(folder.path, "restored"));
    await run(commands);
    expect(existsSync(join(folder.path, "restored/tessera.db"))).toBe(true);
    // No node runs on it, as the page says of SQLite.
    const migrate = block("docs/upgrade.md", "tessera admin migrate").replaceAll(/ +#.*/g, " 2>&1");
    const said = await run(migrate, { TESSERA_DATA: join(folder.path, "restored") });
    expect(said).toMatch(/schema/i);
  });
});
