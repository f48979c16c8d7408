/** `tessera start`: runs a node of the platform. */
import { Command } from "commander";
import type { StartedPlatform } from "../../app/start.ts";
import type { Flags, Settings, StartConfig, StartSecrets } from "../../config/config.ts";
import { addSettings } from "../settings.ts";
import { sayStopping, stopBeforeReady, stopSignal } from "../stopping.ts";
import type { Streams } from "../terminal.ts";
import { platformGreeting } from "./greeting.ts";

/** The dependencies of the command, which `main.ts` provides. */
interface StartActions {
  readonly settings: Settings;
  readConfig(flags: Flags): { config: StartConfig; secrets: StartSecrets };
  start(config: StartConfig, secrets: StartSecrets): Promise<StartedPlatform>;
  exit(code: number): void;
  /** How the reader runs this program, such as `npx tessera`. */
  readonly program: string;
  readonly streams: Streams;
}

const EXAMPLES = `
Examples:
  $ tessera start                                   on http://localhost:3000, data in ./.tessera
  $ tessera start --host 0.0.0.0 --public-url https://tessera.example.com
  $ DATABASE_URL=postgres://… TESSERA_KEYS=… tessera start       one of several nodes`;

export function startCommand(actions: StartActions): Command {
  const command = new Command("start")
    .description("Run the platform: people, organizations, tokens and their deployments.")
    .showHelpAfterError("(tessera start --help shows the options)")
    .exitOverride()
    .action(async (flags: Flags) => actions.exit(await run(flags, actions)));
  return addSettings(command, actions.settings).addHelpText("after", EXAMPLES);
}

/** Runs until a signal; a second one ends the process at once. */
async function run(
  flags: Flags,
  { readConfig, start, streams, program }: StartActions,
): Promise<number> {
  const { config, secrets } = readConfig(flags);
  const signalled = stopSignal();
  const platform = await Promise.race([start(config, secrets), signalled]);
  if (typeof platform === "string") {
    stopBeforeReady(platform, "the platform");
  }
  streams.stdout.write(platformGreeting(platform, program));
  const signal = await signalled;
  // Who presses Ctrl-C has no balancer in front.
  const delayMs = signal === "SIGTERM" ? config.drainDelayMs : 0;
  sayStopping(signal, { ...config, delayMs });
  await platform.stop({ delayMs });
  return 0;
}
