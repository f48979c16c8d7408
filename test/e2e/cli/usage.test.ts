/** Usage from a command line: what docs/usage.md shows works as it stands there. */
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Folder } from "../start/platform.ts";
import { json, type Scene, scene } from "./platform-person.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const PAGE = readFileSync(join(ROOT, "docs/usage.md"), "utf8");

function block(language: string): string {
  return new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(PAGE)?.[1] ?? "";
}

let at: Scene;
const folder = new Folder();
beforeAll(async () => {
  at = await scene();
  symlinkSync(join(ROOT, "node_modules"), join(folder.path, "node_modules"));
  writeFileSync(join(folder.path, "service.ts"), block("ts"));
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** Runs a line as it stands in the document, in the folder of the service. */
function type(line: string) {
  const words = line.split(" ").filter((word) => word !== "npx" && word !== "tessera");
  return at.ada.run(words.map((word) => (word === "service.ts" ? join(folder.path, word) : word)));
}

it("the commands of the page count what a task used, for its token", async () => {
  for (const line of block("sh").trim().split("\n")) {
    const ran = await type(line);
    expect(ran, `${line}: ${ran.stderr}`).toMatchObject({ code: 0 });
    if (line.includes(" submit ")) {
      const of = ["write", ran.stdout.trim(), "--deployment", "writer"];
      expect(await at.ada.run(["task", "wait", ...of])).toMatchObject({ code: 0 });
    }
  }
  const by = (...keys: string[]) => at.ada.run(["usage", "--by", keys.join(), "--json"]);
  const [used] = json(await by("endpoint", "token")).sums as Record<string, unknown>[];
  expect(used).toMatchObject({
    ...{ deployment: "", endpoint: "write", token: { name: "ada's laptop" } },
    ...{ calls: "0", tasks: "1", gpu_seconds: 0, bytes_in: '{"prompt":"hello"}'.length.toString() },
    ...{ bytes_out: '"HELLO"'.length.toString() },
    units: { prompt_tokens: 5, completion_tokens: 5 },
  });
  const shown = await at.ada.run(["usage"]);
  expect(shown.stdout).toMatch(/^DEPLOYMENT +CALLS +TASKS +RUN +IN +OUT +COMPLETION_TOKENS/);
  const csv = await at.ada.run(["usage", "--by", "day,token", "--csv"]);
  expect(csv.stdout.split("\r\n")[0]).toBe(
    "day,token,token_id,calls,tasks,run_seconds,gpu_seconds,bytes_in,bytes_out,completion_tokens,prompt_tokens",
  );
  expect(csv.stdout).toContain(`"ada's laptop"`);
});

it("says what is wrong with what it is asked", async () => {
  const wrong = await at.ada.run(["usage", "--by", "year"]);
  expect(wrong).toMatchObject({ code: 2 });
  expect(wrong.stderr).toContain('--by "year" is not one of day, deployment, endpoint, token');
  for (const [flags, said] of [
    [["--from", "2026-02-30"], "2026-02-30 is no day"],
    [["--from", "2026-02-03", "--to", "2026-02-01"], "is after the end day"],
    [["--from", "2020-01-01"], "more than 400 days"],
  ] as const) {
    const refused = await at.ada.run(["usage", ...flags]);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain(said);
  }
  const none = await at.ada.run(["usage", "--to", "2026-01-02"]);
  expect(none.stderr).toContain("Nothing was used from 2025-12-04 to 2026-01-02");
});
