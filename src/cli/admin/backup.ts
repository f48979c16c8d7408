/** `tessera admin backup`, `backup verify` and `restore`. */
import { Command } from "commander";
import type { BackupRestored } from "../../app/operate/backup/restore.ts";
import type { BackupProgress, BackupRequest, BackupTaken } from "../../app/operate/backup/take.ts";
import type { BackupVerified, VerifyRequest } from "../../app/operate/backup/verify.ts";
import type { BackupConfig, BackupSecrets, Flags, Settings } from "../../config/config.ts";
import { ExitCode } from "../failure.ts";
import { choosePassphrase, findPassphrase, noPassphrase, passphraseOption } from "../passphrase.ts";
import { ProgressLine } from "../progress.ts";
import { addSettings } from "../settings.ts";
import { inUnits } from "../sizes.ts";
import { type Streams, Terminal } from "../terminal.ts";

/** The dependencies of the commands, which `main.ts` provides. */
export interface BackupActions {
  readonly settings: Settings;
  readConfig(flags: Flags): { config: BackupConfig; secrets: BackupSecrets };
  take(request: BackupRequest): Promise<BackupTaken>;
  verify(request: VerifyRequest): Promise<BackupVerified>;
  restore(request: BackupRequest): Promise<BackupRestored>;
  readonly now: () => number;
  exit(code: number): void;
  readonly streams: Streams;
}

interface BackupFlags extends Flags {
  readonly passphraseFile?: string;
}

export function backupCommand(actions: BackupActions): Command {
  const { settings, readConfig, take, now, exit, streams } = actions;
  const command = new Command("backup")
    .description("Back the platform up into one file, while nodes run on it.")
    .argument("<file>", "the backup; it must not exist yet")
    .addOption(passphraseOption());
  return addSettings(command, settings)
    .addHelpText(
      "after",
      examples(
        "tessera admin backup /backups/tessera-2026-11-23.tar",
        "tessera admin backup verify /backups/tessera-2026-11-23.tar",
      ),
    )
    .addCommand(verifyCommand(actions))
    .action(async (file: string, { passphraseFile, ...flags }: BackupFlags) => {
      const terminal = new Terminal(streams);
      const { config, secrets } = readConfig(flags);
      const passphrase = await choosePassphrase(terminal, passphraseFile, secrets.passphrase);
      const taken = await showing(streams, (onProgress) =>
        take({ config, secrets, file, passphrase, now, onProgress }),
      );
      terminal.say(
        `Backed up to ${file}: ${inUnits(taken.sizeBytes)}, with the keys, ${takenParts(taken)}`,
      );
      if (taken.expiredFiles > 0) {
        terminal.say(
          `${files(taken.expiredFiles)} expired while it was made, or were deleted, and are not in it`,
        );
      }
      if (taken.postgres !== undefined) {
        tellOfPostgres(terminal, taken.postgres);
      }
      if (taken.faultyFiles > 0) {
        terminal.say(
          `${files(taken.faultyFiles)} that the database names are missing in the store of large files, or damaged, and are not in the backup: ${taken.faultyBlobIds.join(", ")}${taken.faultyFiles > taken.faultyBlobIds.length ? ", …" : ""}`,
        );
        exit(ExitCode.failed);
      }
    });
}

function verifyCommand({ verify, streams, readConfig }: BackupActions): Command {
  return new Command("verify")
    .description("Check every digest of a backup, and its passphrase. Changes nothing.")
    .argument("<file>", "the backup")
    .addOption(passphraseOption())
    .addHelpText(
      "after",
      examples("tessera admin backup verify backup.tar --passphrase-file /etc/tessera/passphrase"),
    )
    .action(async (file: string, _: BackupFlags, command: Command) => {
      const terminal = new Terminal(streams);
      // Commander gives an option that both commands have to the one above.
      const { passphraseFile, ...flags } = command.optsWithGlobals<BackupFlags>();
      const passphrase = await findPassphrase(
        terminal,
        passphraseFile,
        readConfig(flags).secrets.passphrase,
        "Passphrase (empty: check without)",
      );
      const { about, ...found } = await showing(streams, (onProgress) =>
        verify({ file, passphrase: passphrase || undefined, onProgress }),
      );
      const database =
        about.database === "sqlite"
          ? `the database (${inUnits(found.databaseBytes)})`
          : "no database (it is Postgres)";
      terminal.say(
        `${file} is whole: made at ${about.createdAt} by tessera ${about.version}, with ${database} and ${files(found.files)}`,
      );
      terminal.say(
        found.keysOpened
          ? "The passphrase opens its keys, and nobody without it has changed the file"
          : "Its keys were not opened: give the passphrase to check that, too",
      );
    });
}

export function restoreCommand(actions: BackupActions): Command {
  const { settings, readConfig, restore, now, streams } = actions;
  const command = new Command("restore")
    .description("Make a platform of a backup, in an empty data folder.")
    .argument("<file>", "the backup")
    .addOption(passphraseOption());
  return addSettings(command, settings)
    .addHelpText(
      "after",
      examples("tessera admin restore backup.tar --data /var/lib/tessera-restored"),
    )
    .action(async (file: string, { passphraseFile, ...flags }: BackupFlags) => {
      const terminal = new Terminal(streams);
      const { config, secrets } = readConfig(flags);
      const passphrase = await findPassphrase(terminal, passphraseFile, secrets.passphrase);
      if (passphrase === "") {
        throw noPassphrase();
      }
      const restored = await showing(streams, (onProgress) =>
        restore({ config, secrets, file, passphrase, now, onProgress }),
      );
      const { about, requeued, keysWritten } = restored;
      terminal.say(
        `Restored the platform of ${about.createdAt} into ${config.dataFolder}, with ${files(restored.files)}`,
      );
      terminal.say(
        `${requeued} ${requeued === 1 ? "task was" : "tasks were"} running and ${requeued === 1 ? "is" : "are"} queued again; everybody signs in again. Tokens that were revoked since are valid again: tessera token list shows them`,
      );
      if (!keysWritten) {
        terminal.say("The keys are those of TESSERA_KEYS; those of the backup were not written");
      }
    });
}

function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join("\n")}`;
}

function takenParts({ postgres, blobsInDatabase, files: count }: BackupTaken): string {
  const database = postgres === undefined ? "the database and " : "";
  return blobsInDatabase
    ? "and nothing else: all is in the database"
    : `${database}${files(count)}`;
}

function files(count: number): string {
  return count === 1 ? "1 file" : `${count} files`;
}

function tellOfPostgres(terminal: Terminal, address: string): void {
  terminal.say(`The database is not in the file. Copy it with Postgres's own tools, before each backup of this kind:

  pg_dump --format=custom --schema=tessera --file=tessera.dump ${address}
  pgbackrest --stanza=main backup      # where pgBackRest is set up

To restore: the database with pg_restore or pgBackRest first, then tessera admin restore`);
}

/** Runs `work` with a line of progress on a terminal. */
async function showing<Result>(
  streams: Streams,
  work: (onProgress: BackupProgress) => Promise<Result>,
): Promise<Result> {
  const line = new ProgressLine(streams, { quiet: !streams.interactive });
  try {
    return await work(({ what, files: count, bytes }) =>
      line.step(
        what === "database"
          ? `the database: ${inUnits(bytes)}`
          : `${files(count)}: ${inUnits(bytes)}`,
      ),
    );
  } finally {
    line.end();
  }
}
