/** What the commands of `tessera admin` share: their settings, and the data that they open. */
import { Command } from "commander";
import type { Administration } from "../../app/operate/administration.ts";
import type { DataConfig, DataSecrets, Flags, Settings } from "../../config/config.ts";
import { addSettings } from "../settings.ts";
import type { Streams } from "../terminal.ts";
import type { BackupActions } from "./backup.ts";
import type { CheckActions } from "./check.ts";
import type { MigrateActions } from "./migrate.ts";

/** The dependencies of the commands, which `main.ts` provides. */
export interface AdminActions {
  /** How the reader runs this program, such as `npx tessera`. */
  readonly program: string;
  readonly settings: Settings;
  readConfig(flags: Flags): { config: DataConfig; secrets: DataSecrets };
  /** Opens the platform's data; nodes may be running on it. */
  open(
    config: DataConfig,
    secrets: DataSecrets,
    options: { readonly create: boolean },
  ): Promise<Administration>;
  readonly backup: BackupActions;
  readonly check: CheckActions;
  readonly migrate: MigrateActions["migrate"];
  readonly streams: Streams;
}

/** A command with the settings of the platform's data. */
export function adminOf({ settings }: AdminActions, name: string, description: string): Command {
  return addSettings(new Command(name).description(description), settings);
}

/** Opens the data. With `create`, the platform may not have started yet. */
export function open(
  { readConfig, open: openData }: AdminActions,
  flags: Flags,
  { create } = { create: false },
): Promise<Administration> {
  const { config, secrets } = readConfig(flags);
  return openData(config, secrets, { create });
}

/** The examples in the help of a command. */
export function examples(lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join("\n")}`;
}
