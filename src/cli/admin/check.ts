/** `tessera admin check`: whether this machine is fit for a node. */
import { Command } from "commander";
import type { Flags } from "../../config/settings.ts";
import { jsonOption, outputOption } from "../command.ts";
import { ExitCode } from "../failure.ts";
import type { OutputFormat } from "../output.ts";
import { addSettings } from "../settings.ts";
import { table } from "../table.ts";
import { Terminal } from "../terminal.ts";
import type { AdminActions } from "./command.ts";

const EXAMPLES = `
Examples:
  $ tessera admin check                      the database, the disk, the keys, the sandbox
  $ tessera admin check --sandbox kernel     fails where services are not held by the kernel
  $ tessera admin check --output json`;

export function checkCommand({ tables, env, exit, streams }: AdminActions): Command {
  const command = new Command("check").description(
    "Check that this machine is fit for a node: database (of Postgres also its version, schema, sessions, notifications, clock, durability and replicas), disk, keys, sandbox. Changes nothing.",
  );
  return addSettings(command, tables.CHECK_SETTINGS)
    .addOption(outputOption())
    .addOption(jsonOption())
    .addHelpText("after", EXAMPLES)
    .action(async ({ output, ...flags }: Flags & { readonly output: OutputFormat }) => {
      const { readCheckConfig } = await import("../../config/start.ts");
      const { config, secrets } = readCheckConfig(flags, env);
      const { checkMachine } = await import("../../app/operate/check.ts");
      const checks = await checkMachine(config, secrets);
      const rows = checks.map(({ name, result, detail }) => [name, result, detail]);
      new Terminal(streams).answer(
        output === "json"
          ? JSON.stringify(checks, null, 2)
          : table(["CHECK", "RESULT", "DETAIL"], rows, { empty: "Nothing to check" }),
      );
      if (checks.some(({ result }) => result === "failed")) {
        exit(ExitCode.failed);
      }
    });
}
