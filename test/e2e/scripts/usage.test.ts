import { describe, expect, it } from "vitest";
import { run } from "../cli/program.ts";

interface Script {
  readonly name: string;
  readonly entry: string;
  readonly flags: readonly string[];
  /** Arguments, and what is said of them. */
  readonly refused: readonly (readonly [args: readonly string[], words: string])[];
}

const SCRIPTS: readonly Script[] = [
  {
    name: "chaos",
    entry: "../../../scripts/chaos.ts",
    flags: ["on", "kills", "seconds", "seed", "short"],
    refused: [
      [["--kils", "3"], "'--kils'"],
      [["--kills", "few"], '--kills must be a whole number, not "few"'],
      [["--on", "mysql"], '--on must be sqlite, postgres or cells, not "mysql"'],
      [["sqlite"], "'sqlite'"],
    ],
  },
  {
    name: "bench",
    entry: "../../../bench/main.ts",
    flags: ["peers", "connections", "rounds", "seconds", "tasks", "database", "quick"],
    refused: [
      [["--round", "3"], "'--round'"],
      [["--rounds", "few"], '--rounds must be a number above 0, not "few"'],
      [["--peers", "sidekiq"], "unknown peers: sidekiq"],
      [["--database", "mysql"], "unknown database: mysql"],
      [["speed"], "unknown figures: speed"],
    ],
  },
];

describe.each(SCRIPTS)("npm run $name", ({ name, entry, flags, refused }) => {
  it("shows its flags with their defaults, and an example, when it is asked for help", async () => {
    const { code, stdout, stderr } = await run(["--help"], { entry });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain(`Usage: npm run ${name} -- `);
    for (const flag of flags) {
      expect(stdout).toMatch(new RegExp(`^  --${flag} `, "m"));
    }
    expect(stdout).toMatch(/\(default: /);
    expect(stdout).toContain(`\n  $ npm run ${name} -- `);
  });

  it.each(refused)("refuses %j in one line, and begins nothing", async (args, words) => {
    const { code, stdout, stderr } = await run(args, { entry });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/^[^\n]+\n$/);
    expect(stderr).toContain(words);
    expect(stderr).toContain(`npm run ${name} -- --help`);
  });
});
