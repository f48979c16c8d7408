/** `tessera admin check`: whether this machine is fit for a node. */
import { Command } from "commander";
import type { Check } from "../../app/operate/check-result.ts";
import type { CheckConfig, DataSecrets, Flags, Settings } from "../../config/config.ts";
import { jsonOption, outputOption } from "../command.ts";
import { ExitCode } from "../failure.ts";
import type { OutputFormat } from "../output.ts";
import { addSettings } from "../settings.ts";
import { table } from "../table.ts";
import { type Streams, Terminal } from "../terminal.ts";

/** The dependencies of the command, which `main.ts` provides. */
export interface CheckActions {
  readonly settings: Settings;
  readConfig(flags: Flags): { config: CheckConfig; secrets: DataSecrets };
  check(config: CheckConfig, secrets: DataSecrets): Promise<readonly Check[]>;
  exit(code: number): void;
  readonly streams: Streams;
}

const EXAMPLES = `
Examples:
  $ tessera admin check                      the database, the disk, the keys, the sandbox
  $ tessera admin check --sandbox kernel     fails where services are not held by the kernel
  $ tessera admin check --output json`;

export function checkCommand({
  settings,
  readConfig,
  check,
  exit,
  streams,
}: CheckActions): Command {
  const command = new Command("check").description(
    "Check that this machine is fit for a node: database (of Postgres also its version, schema, sessions, notifications, clock, durability and replicas), disk, keys, sandbox. Changes nothing.",
  );
  return addSettings(command, settings)
    .addOption(outputOption())
    .addOption(jsonOption())
    .addHelpText("after", EXAMPLES)
    .action(async ({ output, ...flags }: Flags & { readonly output: OutputFormat }) => {
      const { config, secrets } = readConfig(flags);
      const checks = await check(config, secrets);
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
