/**
 * The platform's keys. Two kinds: one for the digests by which tokens are
 * found, one for sealing the values that admins may see again. Who has only
 * the database can neither check a guessed value nor read a sealed one.
 *
 * Every key has an id, which stands with whatever was made with it. The first
 * key of a kind makes what is new; the others still verify and open what is
 * old. So keys can be added while all nodes run, and a key that no digest and
 * no sealed value names any more can be taken out.
 *
 * Sealed text is `<key id>.<base64url of nonce, ciphertext and tag>`:
 * AES-256-GCM with a random nonce of 96 bits (NIST SP 800-38D, which allows
 * 2^32 of them under one key). What it belongs to is authenticated with it,
 * so that a sealed value moved to another row does not open.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  type KeyObject,
  randomBytes,
} from "node:crypto";
import { createKeysFile, type KeyList, parseKeys, readKeysFile } from "./keys-file.ts";

export { rotateKeys } from "./keys-file.ts";

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Anyone may bring text that names a key which is nowhere. */
const LOOK_AGAIN_MS = 500;

/** Where the keys are: in a file, made when it is not there, or in text (of `TESSERA_KEYS`). */
export type KeysSource =
  | {
      readonly path: string;
      /** Default true: a platform that is new has no keys yet. False where the database is older. */
      readonly create?: boolean;
    }
  | { readonly env: string };

interface Key {
  readonly id: string;
  readonly key: KeyObject;
}

/** A digest of a token's value, and the key it was made with. */
export interface KeyedDigest {
  readonly keyId: string;
  readonly digest: string;
}

/**
 * Reads the keys; throws an Error for a person when they are broken, missing
 * or readable by others.
 */
export function loadKeys(source: KeysSource): KeyRing {
  if ("path" in source && source.create !== false) {
    createKeysFile(source.path);
  }
  return new KeyRing(() =>
    "path" in source ? readKeysFile(source.path) : parseKeys(source.env, "TESSERA_KEYS"),
  );
}

/** What belongs to a token's sealed value. */
export function sealingContext(organizationId: string, tokenId: string): string {
  return `${organizationId}/${tokenId}`;
}

/** What belongs to a deployment's sealed secret. */
export function deploymentSecretContext({
  organizationId,
  deploymentId,
  name,
}: {
  readonly organizationId: string;
  readonly deploymentId: string;
  readonly name: string;
}): string {
  return `deployment/${organizationId}/${deploymentId}/${name}`;
}

/** How many bytes the text has that was sealed into this. */
export function sealedBytes(sealed: string): number {
  const text = sealed.slice(sealed.indexOf(".") + 1);
  return Math.max(0, Buffer.byteLength(text, "base64url") - NONCE_BYTES - TAG_BYTES);
}

export class KeyRing {
  readonly #read: () => KeyList;
  #digestKeys: readonly Key[] = [];
  #sealKeys: readonly Key[] = [];
  #lookedAgainMs = Number.NEGATIVE_INFINITY;

  constructor(read: () => KeyList) {
    this.#read = read;
    this.reload();
  }

  /** Reads the keys again. Throws, and goes on with those it has, when they cannot be read. */
  reload(): void {
    const { digest, seal } = this.#read();
    this.#digestKeys = digest.map(importKey);
    this.#sealKeys = seal.map(importKey);
  }

  /** The digests of a token's value under every key, the current one first. */
  digests(value: string): readonly [KeyedDigest, ...KeyedDigest[]] {
    const [current, ...others] = this.#digestKeys.map(({ id, key }) => ({
      keyId: id,
      digest: hmac(key, value),
    }));
    return [orThrow(current), ...others];
  }

  /** The digest under the current key, which is what is stored for a new value. */
  digest(value: string): KeyedDigest {
    const { id, key } = orThrow(this.#digestKeys[0]);
    return { keyId: id, digest: hmac(key, value) };
  }

  /** How a code that a person types is kept. One made before a rotation is not found after it. */
  digestUserCode(code: string): string {
    return hmac(orThrow(this.#digestKeys[0]).key, `user code ${code}`);
  }

  /** Seals a text for what `context` names. */
  seal(plain: string, context: string): string {
    const { id, key } = orThrow(this.#sealKeys[0]);
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(associatedData(id, context));
    const sealed = [nonce, cipher.update(plain, "utf8"), cipher.final(), cipher.getAuthTag()];
    return `${id}.${Buffer.concat(sealed).toString("base64url")}`;
  }

  /** Opens what `seal` made; throws when it was changed, is of another context, or its key is gone. */
  unseal(sealed: string, context: string): string {
    const [id = "", text = ""] = sealed.split(".");
    const found = this.#findSealKey(id);
    const bytes = Buffer.from(text, "base64url");
    if (found === undefined || bytes.length < NONCE_BYTES + TAG_BYTES) {
      throw new Error(`no key opens this sealed value: it names the key ${JSON.stringify(id)}`);
    }
    const nonce = bytes.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv(CIPHER, found.key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(associatedData(id, context));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    const plain = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
    return Buffer.concat([plain, decipher.final()]).toString("utf8");
  }

  /** A key that is not known may be new, and this node not told of it yet. */
  #findSealKey(id: string): Key | undefined {
    const find = () => this.#sealKeys.find((each) => each.id === id);
    const nowMs = performance.now();
    const known = find();
    if (known !== undefined || nowMs - this.#lookedAgainMs < LOOK_AGAIN_MS) {
      return known;
    }
    this.#lookedAgainMs = nowMs;
    try {
      this.reload();
    } catch {
      // Those that it has stay; who reloads in earnest hears of it.
    }
    return find();
  }

  /** Whether a sealed value was made with the current key. */
  isSealCurrent(sealed: string): boolean {
    return sealed.startsWith(`${orThrow(this.#sealKeys[0]).id}.`);
  }
}

function importKey({ id, key }: { readonly id: string; readonly key: Buffer }): Key {
  return { id, key: createSecretKey(key) };
}

function hmac(key: KeyObject, text: string): string {
  return createHmac("sha256", key).update(text).digest("base64url");
}

function associatedData(keyId: string, context: string): Buffer {
  return Buffer.from(`${keyId}/${context}`, "utf8");
}

/** `parseKeys` has seen to it that each kind has a key. */
function orThrow<Value>(value: Value | undefined): Value {
  if (value === undefined) {
    throw new Error("the key ring is empty");
  }
  return value;
}
