/** `tessera admin backup`, `backup verify` and `restore`. */
import { Command } from "commander";
import type { BackupProgress, BackupTaken } from "../../app/operate/backup/take.ts";
import { inUnits } from "../../collections/sizes.ts";
import type { Flags } from "../../config/settings.ts";
import { examplesText } from "../command.ts";
import { ExitCode } from "../failure.ts";
import { choosePassphrase, findPassphrase, noPassphrase, passphraseOption } from "../passphrase.ts";
import { ProgressLine } from "../progress.ts";
import { addSettings } from "../settings.ts";
import { type Streams, Terminal } from "../terminal.ts";
import type { AdminActions } from "./command.ts";

interface BackupFlags extends Flags {
  readonly passphraseFile?: string;
}

export function backupCommand(actions: AdminActions): Command {
  const { tables, env, clock, exit, streams } = actions;
  const command = new Command("backup")
    .description("Back the platform up into one file, while nodes run on it.")
    .argument("<file>", "the backup; it must not exist yet")
    .addOption(passphraseOption());
  return addSettings(command, tables.BACKUP_SETTINGS)
    .addHelpText(
      "after",
      examplesText([
        "tessera admin backup /backups/tessera-2026-11-23.tar",
        "tessera admin backup verify /backups/tessera-2026-11-23.tar",
      ]),
    )
    .addCommand(verifyCommand(actions))
    .action(async (file: string, { passphraseFile, ...flags }: BackupFlags) => {
      const terminal = new Terminal(streams);
      const { readBackupConfig } = await import("../../config/start.ts");
      const { config, secrets } = readBackupConfig(flags, env);
      const passphrase = await choosePassphrase(terminal, passphraseFile, secrets.passphrase);
      const { takeBackup } = await import("../../app/operate/backup/take.ts");
      const taken = await showing(streams, (onProgress) =>
        takeBackup({ config, secrets, file, passphrase, now: clock.now, onProgress }),
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

function verifyCommand({ env, streams }: AdminActions): Command {
  return new Command("verify")
    .description("Check every digest of a backup, and its passphrase. Changes nothing.")
    .argument("<file>", "the backup")
    .addOption(passphraseOption())
    .addHelpText(
      "after",
      examplesText([
        "tessera admin backup verify backup.tar --passphrase-file /etc/tessera/passphrase",
      ]),
    )
    .action(async (file: string, _: BackupFlags, command: Command) => {
      const terminal = new Terminal(streams);
      // Commander gives an option that both commands have to the one above.
      const { passphraseFile, ...flags } = command.optsWithGlobals<BackupFlags>();
      const { readBackupConfig } = await import("../../config/start.ts");
      const passphrase = await findPassphrase(
        terminal,
        passphraseFile,
        readBackupConfig(flags, env).secrets.passphrase,
        "Passphrase (empty: check without)",
      );
      const { verifyBackup } = await import("../../app/operate/backup/verify.ts");
      const { about, ...found } = await showing(streams, (onProgress) =>
        verifyBackup({ file, passphrase: passphrase || undefined, onProgress }),
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

export function restoreCommand({ tables, env, clock, streams }: AdminActions): Command {
  const command = new Command("restore")
    .description("Make a platform of a backup, in an empty data folder.")
    .argument("<file>", "the backup")
    .addOption(passphraseOption());
  return addSettings(command, tables.BACKUP_SETTINGS)
    .addHelpText(
      "after",
      examplesText(["tessera admin restore backup.tar --data /var/lib/tessera-restored"]),
    )
    .action(async (file: string, { passphraseFile, ...flags }: BackupFlags) => {
      const terminal = new Terminal(streams);
      const { readBackupConfig } = await import("../../config/start.ts");
      const { config, secrets } = readBackupConfig(flags, env);
      const passphrase = await findPassphrase(terminal, passphraseFile, secrets.passphrase);
      if (passphrase === "") {
        throw noPassphrase();
      }
      const { restoreBackup } = await import("../../app/operate/backup/restore.ts");
      const restored = await showing(streams, (onProgress) =>
        restoreBackup({ config, secrets, file, passphrase, now: clock.now, onProgress }),
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
