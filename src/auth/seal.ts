/**
 * Seals secrets: `<key id>.<base64url of nonce, ciphertext and tag>`, AES-256-GCM with a random nonce
 * of 96 bits (NIST SP 800-38D, which allows 2^32 of them under one key). The owning row is
 * authenticated with it (as associated data), so a sealed value that was moved to another row does
 * not open.
 */
import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from "node:crypto";

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** A key with its id, which what it makes names. */
export interface Key {
  readonly id: string;
  readonly key: KeyObject;
}

/** Seals a text for one context. */
export function seal({ id, key }: Key, plain: string, context: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(associatedData(id, context));
  const sealed = [nonce, cipher.update(plain, "utf8"), cipher.final(), cipher.getAuthTag()];
  return `${id}.${Buffer.concat(sealed).toString("base64url")}`;
}

/** Opens a sealed value. Throws when it was changed, or belongs to another context. */
export function unseal({ id, key }: Key, sealed: string, context: string): string {
  const bytes = bytesOf(sealed);
  if (bytes.length < NONCE_BYTES + TAG_BYTES) {
    throw new Error(`this sealed value is cut off: it names the key ${JSON.stringify(id)}`);
  }
  const nonce = bytes.subarray(0, NONCE_BYTES);
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(associatedData(id, context));
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  const plain = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
  return Buffer.concat([plain, decipher.final()]).toString("utf8");
}

/** The size in bytes of the plain text of a sealed value. */
export function sealedBytes(sealed: string): number {
  return Math.max(0, bytesOf(sealed).length - NONCE_BYTES - TAG_BYTES);
}

function bytesOf(sealed: string): Buffer {
  return Buffer.from(sealed.slice(sealed.indexOf(".") + 1), "base64url");
}

function associatedData(keyId: string, context: string): Buffer {
  return Buffer.from(`${keyId}/${context}`, "utf8");
}
