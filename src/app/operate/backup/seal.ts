/**
 * The passphrase of a backup. scrypt makes two keys of it: one seals the platform's
 * keys (AES-256-GCM), the other makes the MAC of the index (HMAC-SHA-256).
 *
 * The parameters of scrypt are those that OWASP's cheat sheet on the storage of
 * passwords gives first (N = 2^17, r = 8, p = 1): 128 MiB and a third of a second
 * for each guess. They are part of the format, so that no file can ask for more.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  randomBytes,
  scrypt,
  timingSafeEqual,
} from "node:crypto";
import { promisify } from "node:util";
import { BACKUP_FORMAT, BackupError } from "./format.ts";

const CIPHER = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const SALT_BYTES = 16;
const TAG_BYTES = 16;

const SCRYPT = { N: 2 ** 17, r: 8, p: 1, maxmem: 256 * 1024 ** 2 };

/** A salt for one backup, in base64url. */
export function newSalt(): string {
  return randomBytes(SALT_BYTES).toString("base64url");
}

const derive = promisify<string, Buffer, number, typeof SCRYPT, Buffer>(scrypt);

/** The keys that a passphrase and a salt make. */
export class BackupSeal {
  readonly #sealKey: Buffer;
  readonly #macKey: Buffer;

  private constructor(bytes: Buffer) {
    this.#sealKey = bytes.subarray(0, KEY_BYTES);
    this.#macKey = bytes.subarray(KEY_BYTES);
  }

  static async of(passphrase: string, salt: string): Promise<BackupSeal> {
    const bytes = Buffer.from(salt, "base64url");
    return new BackupSeal(await derive(passphrase.normalize("NFC"), bytes, 2 * KEY_BYTES, SCRYPT));
  }

  /** Seals the text of the platform's keys; once, because each backup has a salt of its own. */
  seal(plain: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#sealKey, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(ASSOCIATED);
    const sealed = [nonce, cipher.update(plain, "utf8"), cipher.final(), cipher.getAuthTag()];
    return Buffer.concat(sealed).toString("base64url");
  }

  /** Opens the sealed keys. Throws a `BackupError` for another passphrase. */
  unseal(sealed: string): string {
    const bytes = Buffer.from(sealed, "base64url");
    try {
      const nonce = bytes.subarray(0, NONCE_BYTES);
      const decipher = createDecipheriv(CIPHER, this.#sealKey, nonce, {
        authTagLength: TAG_BYTES,
      });
      decipher.setAAD(ASSOCIATED);
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
      const plain = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
      return Buffer.concat([plain, decipher.final()]).toString("utf8");
    } catch {
      throw new BackupError(
        "the passphrase is not that of this backup: its keys do not open with it",
      );
    }
  }

  /** The MAC of the index's digest, in hex. */
  macOf(index: string): string {
    return createHmac("sha256", this.#macKey).update(index).digest("hex");
  }

  /** Throws a `BackupError` when somebody without the passphrase has put the file together. */
  checkMac(index: string, mac: string): void {
    if (!timingSafeEqual(Buffer.from(this.macOf(index), "hex"), Buffer.from(mac, "hex"))) {
      throw new BackupError(
        "the backup was changed after it was made: it is not what the holder of the passphrase wrote",
      );
    }
  }
}

const ASSOCIATED = Buffer.from(`tessera backup ${BACKUP_FORMAT}`);
