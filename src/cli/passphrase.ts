/** The passphrase of a backup: from a file, the environment, or a prompt. */
import { readFile } from "node:fs/promises";
import { Option } from "commander";
import { CliError, usageError } from "./failure.ts";
import type { Terminal } from "./terminal.ts";

/** Passphrase of a backup: a thief of the file can try many on a machine of their own. */
const MIN_PASSPHRASE_CHARACTERS = 12;

/** Passphrase of a backup, on the first line of its file. */
const MAX_PASSPHRASE_CHARACTERS = 4096;

export function passphraseOption(): Option {
  return new Option(
    "--passphrase-file <file>",
    "file whose first line is the passphrase of the keys (default: TESSERA_BACKUP_PASSPHRASE, or you are asked)",
  );
}

/** The passphrase of a backup that is there already. */
export async function findPassphrase(
  terminal: Terminal,
  file: string | undefined,
  fromEnvironment: string | undefined,
  question = "Passphrase of the backup",
): Promise<string> {
  if (file !== undefined) {
    return await firstLineOf(file);
  }
  if (fromEnvironment !== undefined) {
    return fromEnvironment;
  }
  return terminal.interactive ? await terminal.askSecret(question) : "";
}

/** The passphrase of a new backup: asked for twice, and not too short. */
export async function choosePassphrase(
  terminal: Terminal,
  file: string | undefined,
  fromEnvironment: string | undefined,
): Promise<string> {
  const isTyped = file === undefined && fromEnvironment === undefined && terminal.interactive;
  const chosen = await findPassphrase(
    terminal,
    file,
    fromEnvironment,
    "Passphrase, without which nobody restores the backup",
  );
  if (chosen.length < MIN_PASSPHRASE_CHARACTERS) {
    throw chosen === "" && !isTyped
      ? noPassphrase()
      : usageError(
          `the passphrase must have ${MIN_PASSPHRASE_CHARACTERS} characters or more: a thief of the file can try many`,
        );
  }
  if (isTyped && (await terminal.askSecret("The same once more")) !== chosen) {
    throw usageError("the two passphrases differ, and nothing was backed up");
  }
  return chosen;
}

/** For a command that cannot go on without one. */
export function noPassphrase(): CliError {
  return usageError(
    "the keys in a backup are sealed under a passphrase, and none was given",
    "give it with --passphrase-file, in TESSERA_BACKUP_PASSPHRASE, or run this on a terminal",
  );
}

async function firstLineOf(path: string): Promise<string> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (err) {
    const reason = err instanceof Error ? err.message : String(err);
    throw new CliError(`the file of the passphrase cannot be read: ${reason}`);
  }
  const line = (text.split("\n", 1)[0] ?? "").replace(/\r$/, "");
  if (line === "" || line.length > MAX_PASSPHRASE_CHARACTERS) {
    throw new CliError(
      `the first line of ${path} must be the passphrase, of at most ${MAX_PASSPHRASE_CHARACTERS} characters`,
    );
  }
  return line;
}
