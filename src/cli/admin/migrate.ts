/** `tessera admin migrate`: migrates the database to the schema of this version. */
import { Command } from "commander";
import type { MigrationAnswer } from "../../app/operate/migrate.ts";
import { inUnits } from "../../collections/sizes.ts";
import type { Flags } from "../../config/settings.ts";
import { jsonOption, outputOption } from "../command.ts";
import type { OutputFormat } from "../output.ts";
import { addSettings } from "../settings.ts";
import { table } from "../table.ts";
import { Terminal } from "../terminal.ts";
import type { AdminActions } from "./command.ts";

interface MigrateFlags {
  readonly dryRun?: boolean;
  readonly copy: boolean;
  readonly output: OutputFormat;
}

const EXAMPLES = `
Examples:
  $ tessera admin migrate --dry-run          what an upgrade will do
  $ DATABASE_URL=postgres://… tessera admin migrate

docs/upgrade.md says how nodes are upgraded one after the other.`;

export function migrateCommand({ tables, env, streams }: AdminActions): Command {
  const command = new Command("migrate").description(
    "Migrate the database to the schema of this version, as a start does.",
  );
  return addSettings(command, tables.DATA_SETTINGS)
    .option("--dry-run", "only show what would be done")
    .option("--no-copy", "make no copy of a SQLite file before; you have a backup")
    .addOption(outputOption())
    .addOption(jsonOption())
    .addHelpText("after", EXAMPLES)
    .action(async ({ dryRun = false, copy, output, ...flags }: Flags & MigrateFlags) => {
      const { readDataConfig } = await import("../../config/start.ts");
      const { config, secrets } = readDataConfig(flags, env);
      const { migrateData } = await import("../../app/operate/migrate.ts");
      const answer = await migrateData(config, secrets, { dryRun, copies: copy });
      const terminal = new Terminal(streams);
      if (output === "json") {
        terminal.answer(JSON.stringify(toJson(answer), null, 2));
        return;
      }
      if (answer.pending.length > 0) {
        const rows = answer.pending.map(({ version, name }) => [String(version), name]);
        terminal.answer(table(["VERSION", "MIGRATION"], rows, { empty: "No migrations" }));
      }
      terminal.say(told(answer, { dryRun, copy }));
    });
}

/** What was done, or would be, in sentences. */
function told(
  { database, version, target, pending, copy, migrated }: MigrationAnswer,
  flags: { readonly dryRun: boolean; readonly copy: boolean },
): string {
  if (migrated !== undefined) {
    const copied = migrated.copy === undefined ? "" : `; it is as before in ${migrated.copy}`;
    return `Migrated ${database} from version ${migrated.from} of the schema to ${migrated.to}${copied}`;
  }
  if (pending.length === 0) {
    return `${database} has version ${version} of the schema, and nothing is to be done`;
  }
  const room =
    copy === undefined || !flags.copy
      ? ""
      : `; it is copied to ${copy.path} first, which takes ${inUnits(copy.neededBytes)} of ${inUnits(copy.freeBytes)} that are free`;
  const oldest = Math.max(...pending.map(({ usableFrom }) => usableFrom));
  const others =
    oldest > version
      ? `\nStop all nodes first that know no version of the schema from ${oldest} on: they cannot use it afterwards`
      : "";
  return `Nothing was changed. ${database} has version ${version} of the schema, and would have ${target}${room}${others}`;
}

function toJson({ database, version, target, pending, copy, migrated }: MigrationAnswer) {
  return {
    database,
    version,
    target,
    pending: pending.map(({ version, name, usableFrom }) => ({
      version,
      name,
      usable_from: usableFrom,
    })),
    copy: copy && {
      path: copy.path,
      needed_bytes: copy.neededBytes,
      free_bytes: copy.freeBytes,
    },
    migrated: migrated && { from: migrated.from, to: migrated.to, copy: migrated.copy },
  };
}
