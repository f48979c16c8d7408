/** Schedules from a command line: what docs/schedules.md shows works as it stands there. */
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { blocksOf } from "../docs/blocks.ts";
import { Folder } from "../start/platform.ts";
import { json, type Scene, scene } from "./platform-person.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const block = blocksOf("docs/schedules.md");

let at: Scene;
const folder = new Folder();
beforeAll(async () => {
  at = await scene();
  symlinkSync(join(ROOT, "node_modules"), join(folder.path, "node_modules"));
  writeFileSync(join(folder.path, "service.ts"), block("ts"));
  declare(block("yaml"));
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

function declare(yaml: string): void {
  writeFileSync(join(folder.path, "tessera.yaml"), yaml);
}

/** Runs a line as it stands in a document, in the folder of the service. */
function type(line: string) {
  const words = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(
    ([, quoted, bare]) => quoted ?? bare ?? "",
  );
  const place = words.map((word) => (word === "." ? folder.path : word));
  return at.ada.run(place.filter((word) => word !== "npx" && word !== "tessera"));
}

async function schedules() {
  const listed = await at.ada.run(["schedule", "list", "reports", "--json"]);
  return json(listed).schedules as Record<string, unknown>[];
}

it("the commands of the page do what it says", async () => {
  for (const line of block("sh").trim().split("\n")) {
    const ran = await type(line);
    expect(ran, `${line}: ${ran.stderr}`).toMatchObject({ code: 0 });
  }
  const [nightly, ...others] = await schedules();
  expect(others).toEqual([]);
  expect(nightly).toMatchObject({
    name: "nightly",
    ...{ endpoint: "report", cron: "0 3 * * *", time_zone: "Europe/Amsterdam" },
    ...{ overlap: "skip", catch_up: "one", paused: false, declared: true, problem: "" },
    arguments: { region: "north" },
  });
  expect(nightly?.next_times).toHaveLength(5);
  const audit = await at.ada.run(["audit", "list", "--action", "schedule"]);
  for (const action of ["create", "update", "delete", "run"]) {
    expect(audit.stdout).toContain(`schedule.${action}`);
  }
});

it("a task that is run now names its schedule, and has its arguments", async () => {
  const ran = await type("npx tessera schedule run reports nightly");
  const id = ran.stdout.trim();
  const of = ["report", id, "--deployment", "reports"];
  const waited = await at.ada.run(["task", "wait", ...of]);
  expect(waited.stdout).toContain("report of north");
  const listed = await at.platform.call(`/api/v1/tasks/${id}`, undefined, {
    ...at.adaCookie,
    "tessera-deployment": "acme/reports",
  });
  expect(listed.json).toMatchObject({ schedule: "nightly" });
});

it("a deploy keeps what it does not name, and deletes what its file had before", async () => {
  await type(
    "npx tessera schedule create reports by-hand --endpoint-name report --cron '0 0 1 * *' region=west",
  );
  await type("npx tessera schedule pause reports nightly");
  const { yaml, none } = { yaml: block("yaml"), none: "service: service.ts\n" };
  declare(yaml.replace("0 3 * * *", "0 4 * * *"));
  expect(await type("npx tessera deploy .")).toMatchObject({ code: 0 });
  expect(await schedules()).toMatchObject([
    { name: "by-hand", declared: false },
    { name: "nightly", declared: true, cron: "0 4 * * *", paused: true, next_times: [] },
  ]);
  declare(none);
  await type("npx tessera deploy .");
  expect(await schedules()).toHaveLength(2);
  declare(`${none}schedules: {}\n`);
  await type("npx tessera deploy .");
  expect(await schedules()).toMatchObject([{ name: "by-hand" }]);
});

it("a dry run tells the times and stores nothing", async () => {
  const create = ["schedule", "create", "reports", "dry", "--endpoint-name", "report", "region=x"];
  const dry = await at.ada.run([...create, "--cron", "0 12 * * *", "--dry-run", "--json"]);
  expect(json(dry).next_times).toHaveLength(5);
  expect(await schedules()).toHaveLength(1);
});

it.each([
  ["a cron that never comes", ["--cron", "0 0 30 2 *", "region=x"], "never comes"],
  ["six fields", ["--cron", "0 0 0 * * *", "region=x"], "five fields"],
  ["a zone that is none", ["--cron", "0 0 * * *", "--time-zone", "Mars/Base", "region=x"], "IANA"],
  ["arguments that do not fit", ["--cron", "0 0 * * *", "region=1"], "region"],
  ["no arguments where some are needed", ["--cron", "0 0 * * *"], "region"],
])("refuses %s", async (_, flags, expected) => {
  const refused = await at.ada.run([
    ...["schedule", "create", "reports", "bad", "--endpoint-name", "report"],
    ...flags,
  ]);
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain(expected);
});

it("refuses an endpoint that is not there, a name twice, and one that nobody made", async () => {
  const create = (name: string, endpoint: string) =>
    at.ada.run([
      ...["schedule", "create", "reports", name, "--endpoint-name", endpoint],
      ...["--cron", "0 0 * * *", "region=x"],
    ]);
  expect((await create("other", "nothing")).stderr).toContain("no endpoint");
  expect((await create("by-hand", "report")).stderr).toContain("has a schedule by-hand already");
  expect((await create("By Hand", "report")).stderr).toContain("lower case letters");
  const run = await at.ada.run(["schedule", "run", "reports", "nobody"]);
  expect(run.stderr).toContain('no schedule "nobody"');
});

it("names the line of a tessera.yaml that says something else", async () => {
  for (const [text, fault] of [
    ["schedules: [a]", "must have names"],
    ["schedules: { a: { cron: x } }", "schedules.a.endpoint is missing"],
    ["schedules: { a: { endpoint: report, cron: x, overlap: always } }", "skip, queue, replace"],
    ["schedules: { a: { endpoint: report, cron: x, zone: UTC } }", '"zone" is not a key'],
  ] as const) {
    declare(`service: service.ts\n${text}\n`);
    const refused = await type("npx tessera deploy .");
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("tessera.yaml:2:");
    expect(refused.stderr).toContain(fault);
  }
});
