/**
 * Signed texts: credentials that are not stored. What they say is in them, with an HMAC, so every
 * node that has the platform's keys reads them. They end by themselves, soon.
 *
 *     <prefix>_<base64url of: version (1 byte), kind (1), expiry in seconds since 1970 (4),
 *              four ids (16 each), HMAC-SHA-256 of all that (32)>
 *
 * The key is derived (HKDF, RFC 5869) for one purpose and this version alone, so a text of one
 * purpose is not one of another.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

const VERSION = 1;
const ID_BYTES = 16;
const HEAD_BYTES = 6;
const SIGNED_BYTES = HEAD_BYTES + 4 * ID_BYTES;
const MAC_BYTES = 32;

/** Characters after the prefix. */
const TEXT_LENGTH = Math.ceil(((SIGNED_BYTES + MAC_BYTES) * 4) / 3);

type Ids = readonly [string, string, string, string];

interface SignedFields {
  /** A number that means something to the purpose. */
  readonly kind: number;
  readonly expiresAtMs: number;
  /** UUIDs; an empty one is missing. */
  readonly ids: Ids;
}

interface SignedTextOptions {
  /** With what a text begins, such as `tsra_`. */
  readonly prefix: string;
  /** What keys are derived for. */
  readonly purpose: string;
  /** The keys of the installation for a purpose, the current one first. */
  readonly keys: (purpose: string) => readonly Uint8Array[];
}

/** Signs and reads the texts of one purpose. */
export class SignedText {
  readonly #options: SignedTextOptions;

  constructor(options: SignedTextOptions) {
    this.#options = options;
  }

  /** The number of characters of each. */
  get length(): number {
    return this.#options.prefix.length + TEXT_LENGTH;
  }

  sign({ kind, expiresAtMs, ids }: SignedFields): string {
    const { prefix, purpose, keys } = this.#options;
    const [key] = keys(purpose);
    if (key === undefined) {
      throw new Error(`there is no key to sign a ${purpose} with`);
    }
    const signed = Buffer.alloc(SIGNED_BYTES);
    signed.writeUInt8(VERSION, 0);
    signed.writeUInt8(kind, 1);
    signed.writeUInt32BE(Math.floor(expiresAtMs / 1_000), 2);
    ids.forEach((id, index) => {
      bytesOf(id).copy(signed, HEAD_BYTES + index * ID_BYTES);
    });
    return prefix + Buffer.concat([signed, mac(key, signed)]).toString("base64url");
  }

  /** What a text says; undefined for one that was altered, or comes from elsewhere. The expiry is the caller's to check. */
  read(text: string): SignedFields | undefined {
    const { prefix, purpose, keys } = this.#options;
    if (text.length !== this.length || !text.startsWith(prefix)) {
      return undefined;
    }
    const encoded = text.slice(prefix.length);
    const bytes = Buffer.from(encoded, "base64url");
    // Other texts may decode to the same bytes.
    if (bytes.toString("base64url") !== encoded) {
      return undefined;
    }
    const signed = bytes.subarray(0, SIGNED_BYTES);
    const given = bytes.subarray(SIGNED_BYTES);
    const isOurs = keys(purpose).some((key) => timingSafeEqual(mac(key, signed), given));
    if (!isOurs || signed.readUInt8(0) !== VERSION) {
      return undefined;
    }
    const idAt = (index: number): string => {
      const at = HEAD_BYTES + index * ID_BYTES;
      return textOf(signed.subarray(at, at + ID_BYTES));
    };
    return {
      kind: signed.readUInt8(1),
      expiresAtMs: signed.readUInt32BE(2) * 1_000,
      ids: [idAt(0), idAt(1), idAt(2), idAt(3)],
    };
  }
}

function mac(key: Uint8Array, signed: Uint8Array): Buffer {
  return createHmac("sha256", key).update(signed).digest();
}

const NO_ID = Buffer.alloc(ID_BYTES);

/** The bytes of a UUID; zeros for the empty text. */
function bytesOf(id: string): Buffer {
  const bytes = id === "" ? NO_ID : Buffer.from(id.replaceAll("-", ""), "hex");
  if (bytes.length !== ID_BYTES) {
    throw new Error("an id is no UUID, and cannot be signed");
  }
  return bytes;
}

function textOf(bytes: Buffer): string {
  return bytes.equals(NO_ID)
    ? ""
    : bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
