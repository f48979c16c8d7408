/** What the commands of `tessera admin` share: their settings, and the data that they open. */
import { Command } from "commander";
import type { Administration } from "../../app/operate/administration.ts";
import type { Flags } from "../../config/settings.ts";
import type { Surroundings } from "../command.ts";
import { addSettings } from "../settings.ts";

export interface AdminActions extends Surroundings {
  /** The tables of their settings. */
  readonly tables: typeof import("../../config/start-settings.ts");
}

/** A command with the settings of the platform's data. */
export function adminOf({ tables }: AdminActions, name: string, description: string): Command {
  return addSettings(new Command(name).description(description), tables.DATA_SETTINGS);
}

/** Opens the platform's data; nodes may be running on it. With `create`, it may not have started yet. */
export async function open(
  { env }: AdminActions,
  flags: Flags,
  { create } = { create: false },
): Promise<Administration> {
  const { readDataConfig } = await import("../../config/start.ts");
  const { config, secrets } = readDataConfig(flags, env);
  const { openAdministration } = await import("../../app/operate/open.ts");
  return await openAdministration(config, secrets, { create });
}
