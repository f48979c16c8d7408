/** `tessera admin backup verify`: reads a whole backup and checks every digest, without restoring it. */
import { parseKeys } from "../../../auth/keys-file.ts";
import type { BackupAbout } from "./format.ts";
import { BackupReader } from "./reader.ts";
import { BackupSeal } from "./seal.ts";
import type { BackupProgress } from "./take.ts";

interface VerifyRequest {
  readonly file: string;
  /** Undefined: the digests alone are checked. */
  readonly passphrase: string | undefined;
  readonly onProgress: BackupProgress;
}

interface BackupVerified {
  readonly about: Pick<BackupAbout, "createdAt" | "version" | "database">;
  readonly sizeBytes: number;
  readonly databaseBytes: number;
  readonly files: number;
  /** The passphrase opens the keys, and nobody without it has changed the file. */
  readonly keysOpened: boolean;
}

/** Rejects with a `BackupError` that says what is wrong with the file. */
export async function verifyBackup({
  file,
  passphrase,
  onProgress,
}: VerifyRequest): Promise<BackupVerified> {
  await using reader = await BackupReader.open(file);
  const { about } = reader;
  const seal = passphrase === undefined ? undefined : await BackupSeal.of(passphrase, about.salt);
  if (seal !== undefined) {
    parseKeys(seal.unseal(about.keys), "the backup");
  }
  let [files, databaseBytes] = [0, 0];
  for await (const { kind, sizeBytes } of reader.entries()) {
    if (kind === "database") {
      databaseBytes = sizeBytes;
    } else {
      files += 1;
    }
    onProgress({ what: "files", files, bytes: reader.readBytes });
  }
  seal?.checkMac(reader.end.index, reader.end.mac);
  return {
    about,
    sizeBytes: reader.sizeBytes,
    databaseBytes,
    files,
    keysOpened: seal !== undefined,
  };
}
