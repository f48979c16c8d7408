/**
 * `tessera admin`: operator commands, which work on the platform's data
 * directly on its machine.
 */
import { Command, Option } from "commander";
import type { AdminCredentials, PasswordReset } from "../../app/operate/administration.ts";
import type { Flags } from "../../config/settings.ts";
import { examplesText, jsonOption, outputOption, type Surroundings } from "../command.ts";
import { ExitCode, usageError } from "../failure.ts";
import type { OutputFormat } from "../output.ts";
import { plain } from "../plain.ts";
import { addSettings } from "../settings.ts";
import { table } from "../table.ts";
import { Terminal } from "../terminal.ts";
import { backupCommand, restoreCommand } from "./backup.ts";
import { cellsCommand } from "./cells.ts";
import { type AdminActions, adminOf, open } from "./command.ts";
import { migrateCommand } from "./migrate.ts";
import { nodesCommand, operatorsCommand } from "./operators.ts";
import {
  createOrganizationCommand,
  invitationLinksCommand,
  monitoringCommand,
  organizationsCommand,
} from "./organization.ts";

export async function adminCommand(surroundings: Surroundings): Promise<Command> {
  const tables = await import("../../config/start-settings.ts");
  const actions: AdminActions = { ...surroundings, tables };
  const monitoring = new Command("monitoring")
    .description("Let an organization have monitoring tokens, or not.")
    .addCommand(monitoringCommand(actions, "enable"))
    .addCommand(monitoringCommand(actions, "disable"));
  const links = new Command("invitation-links")
    .description("Let an organization's admins see links of invitations, or not.")
    .addCommand(invitationLinksCommand(actions, "enable"))
    .addCommand(invitationLinksCommand(actions, "disable"));
  return (
    new Command("admin")
      .description("Operate the platform of this machine. Nodes may be running meanwhile.")
      // What follows the name of a command below belongs to that: also those of `nodes` have --data.
      .enablePositionalOptions()
      .addCommand(setupCommand(actions))
      .addCommand(checkCommand(actions))
      .addCommand(backupCommand(actions))
      .addCommand(restoreCommand(actions))
      .addCommand(migrateCommand(actions))
      .addCommand(nodesCommand(actions))
      .addCommand(cellsCommand(actions))
      .addCommand(operatorsCommand(actions))
      .addCommand(organizationsCommand(actions))
      .addCommand(createOrganizationCommand(actions))
      .addCommand(links)
      .addCommand(monitoring)
      .addCommand(resetPasswordCommand(actions))
      .addCommand(rotateKeysCommand(actions))
  );
}

/** `url` is where the platform runs; undefined: it does not. */
const next = (program: string, url: string | undefined): string =>
  url === undefined
    ? `
Next, start the platform, and log in at the address that it names:

  ${program} start
  ${program} cloud login --endpoint http://localhost:3000`
    : `
Next:

  ${program} cloud login --endpoint ${url}`;

interface PasswordFlags extends Flags {
  readonly name?: string;
  readonly email: string;
}

function setupCommand(actions: AdminActions): Command {
  return adminOf(
    actions,
    "setup",
    "Make the first person, organization and admin, without a browser.",
  )
    .requiredOption(
      "--organization <name>",
      "name of the organization: lower case letters, digits, hyphens",
    )
    .requiredOption("--email <address>", "the admin's e-mail address")
    .option("--name <name>", "the admin's name")
    .addOption(passwordStdin())
    .addHelpText(
      "after",
      examplesText(["tessera admin setup --organization acme --email you@example.com"]),
    )
    .action(async (flags: PasswordFlags & { readonly organization: string }) => {
      await using administration = await open(actions, flags, { create: true });
      const terminal = new Terminal(actions.streams);
      const password = await choosePassword(terminal, flags);
      const { organization, email, name } = flags;
      const made = await administration.setUp({
        organization,
        email,
        ...(name !== undefined && { displayName: name }),
        ...(password !== undefined && { password }),
      });
      terminal.say(`Made the organization ${organization} with its admin ${made.email}`);
      tellPassword(terminal, made);
      const [node] = await administration.nodes();
      terminal.say(next(actions.program, node?.facts?.platformUrl));
    });
}

function resetPasswordCommand(actions: AdminActions): Command {
  return adminOf(actions, "reset-password", "Set a person's password, and end their sessions.")
    .requiredOption("--email <address>", "the person's e-mail address")
    .option("--revoke-tokens", "also end all their personal tokens: somebody knew the password")
    .addOption(passwordStdin())
    .addHelpText(
      "after",
      examplesText([
        "tessera admin reset-password --email you@example.com",
        "tessera admin reset-password --email you@example.com --revoke-tokens",
      ]),
    )
    .action(async ({ revokeTokens, ...flags }: PasswordFlags & RevokeFlags) => {
      await using administration = await open(actions, flags);
      const terminal = new Terminal(actions.streams);
      const password = await choosePassword(terminal, flags);
      const { email } = flags;
      const made = await administration.resetPassword({
        email,
        ...(revokeTokens === true && { revokeTokens }),
        ...(password !== undefined && { password }),
      });
      terminal.say(`Set the password of ${made.email}; all their sessions have ended`);
      terminal.say(tokensText(made, revokeTokens === true));
      tellPassword(terminal, made);
    });
}

interface RevokeFlags {
  readonly revokeTokens?: boolean;
}

function tokensText({ endedTokens, keptTokens }: PasswordReset, revoked: boolean): string {
  const count = (number: number) =>
    number === 1 ? "1 personal token" : `${number} personal tokens`;
  if (revoked) {
    return `Ended ${count(endedTokens)} of theirs`;
  }
  return keptTokens === 0
    ? "They have no personal tokens"
    : `They keep ${count(keptTokens)}: --revoke-tokens ends them, too`;
}

function rotateKeysCommand(actions: AdminActions): Command {
  return adminOf(
    actions,
    "rotate-keys",
    "Make new keys for the digests and the sealed values of tokens; tokens stay valid.",
  )
    .option("--reseal", "make no new keys: only seal every value again with the current one")
    .option("--one-file", "with Postgres: no other node has a file of keys of its own")
    .addHelpText("after", examplesText(["tessera admin rotate-keys"]))
    .action(async ({ reseal = false, oneFile = false, ...flags }: RotateFlags) => {
      await using administration = await open(actions, flags);
      const terminal = new Terminal(actions.streams);
      const rotated = await administration.rotateKeys({ resealOnly: reseal, oneFile });
      if (rotated.outcome === "to_set") {
        tellKeys(terminal, rotated);
        return;
      }
      const { resealed, unreadable } = rotated;
      terminal.say(
        `${reseal ? "Sealed" : "Made new keys, and sealed"} ${resealed} value${resealed === 1 ? "" : "s"} again; nodes that run know of it within a second or so`,
      );
      if (unreadable > 0) {
        terminal.say(
          `${unreadable} could not be opened with any key: these tokens work, but their values cannot be shown again`,
        );
      }
    });
}

interface RotateFlags {
  readonly reseal?: boolean;
  readonly oneFile?: boolean;
  readonly data?: string;
  readonly database?: string;
  readonly config?: string;
}

/** Prints keys for the environment to standard output, and the next steps to standard error. */
function tellKeys(
  terminal: Terminal,
  { prepared, rotated }: { readonly prepared: string; readonly rotated: string },
): void {
  terminal.say(
    "Nothing is changed yet. Set TESSERA_KEYS on every node to the first line, and restart them all;\nthen to the second line, and restart them again; then run this with --reseal.\n",
  );
  terminal.answer(prepared);
  terminal.answer(rotated);
}

function passwordStdin(): Option {
  return new Option(
    "--password-stdin",
    "read the password from standard input; without it you are asked, or one is generated",
  );
}

/** Asks for a password; undefined when one is to be generated. */
async function choosePassword(
  terminal: Terminal,
  flags: PasswordFlags,
): Promise<string | undefined> {
  if (flags.passwordStdin) {
    return await terminal.readSecret("Password");
  }
  if (!terminal.interactive) {
    return undefined;
  }
  const password = await terminal.askSecret("Password (empty: one is generated)");
  if (password === "") {
    return undefined;
  }
  if ((await terminal.askSecret("The same once more")) !== password) {
    throw usageError("the two passwords differ, and nothing was changed");
  }
  return password;
}

/** Prints a generated password, which is shown only this once. */
function tellPassword(terminal: Terminal, { generated }: AdminCredentials): void {
  if (generated !== undefined) {
    terminal.say("The password, shown this once:");
    terminal.answer(plain(generated));
  }
}

// `tessera admin check`: whether this machine is fit for a node.

const EXAMPLES = `
Examples:
  $ tessera admin check                      the database, the disk, the keys, the sandbox
  $ tessera admin check --sandbox kernel     fails where services are not held by the kernel
  $ tessera admin check --output json`;

function checkCommand({ tables, env, exit, streams }: AdminActions): Command {
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
