/** `tessera start`: runs a node of the platform. */
import { Command } from "commander";
import type { Flags } from "../../config/settings.ts";
import type { Surroundings } from "../command.ts";
import { addSettings } from "../settings.ts";
import { sayStopping, stopBeforeReady, stopSignal, stopWithin } from "../stopping.ts";
import { platformGreeting } from "./greeting.ts";

const EXAMPLES = `
Examples:
  $ tessera start                                   on http://localhost:3000, data in ./.tessera
  $ tessera start --host 0.0.0.0 --public-url https://tessera.example.com
  $ DATABASE_URL=postgres://… TESSERA_KEYS=… tessera start       one of several nodes`;

export async function startCommand(surroundings: Surroundings): Promise<Command> {
  const { START_SETTINGS } = await import("../../config/start-settings.ts");
  const command = new Command("start")
    .description("Run the platform: people, organizations, tokens and their deployments.")
    .action((flags: Flags) => run(flags, surroundings));
  return addSettings(command, START_SETTINGS).addHelpText("after", EXAMPLES);
}

/** Runs until a signal; a second one ends the process at once. */
async function run(flags: Flags, { env, streams, program }: Surroundings): Promise<void> {
  const { readStartConfig } = await import("../../config/start.ts");
  const { config, secrets } = readStartConfig(flags, env);
  const signalled = stopSignal();
  const start = async () =>
    await (await import("../../app/start.ts")).startPlatform(config, secrets);
  const platform = await Promise.race([start(), signalled]);
  if (typeof platform === "string") {
    stopBeforeReady(platform, "the platform");
  }
  streams.stdout.write(platformGreeting(platform, program));
  const signal = await signalled;
  // Who presses Ctrl-C has no balancer in front.
  const delayMs = signal === "SIGTERM" ? config.drainDelayMs : 0;
  sayStopping(signal, { ...config, delayMs });
  await stopWithin(delayMs + config.drainMs, () => platform.stop({ delayMs }));
}
