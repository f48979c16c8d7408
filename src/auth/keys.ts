/**
 * The platform's key ring. Digest keys make the HMACs by which tokens are
 * found; seal keys encrypt the values that admins may see again. With the
 * database alone nobody can check a guessed value or read a sealed one.
 *
 * Every digest and sealed value carries the id of its key. The first key of a
 * kind makes new ones; the others still verify and open old ones. So keys can
 * be added while all nodes run, and a key can be removed when no digest and no
 * sealed value names it any more.
 */
import { createHmac, createSecretKey, hkdfSync, type KeyObject } from "node:crypto";
import { createKeysFile, type KeyList, parseKeys, readKeysFile } from "./keys-file.ts";
import { type Key, seal, unseal } from "./seal.ts";

/**
 * Least time between two reads of the keys because of an unknown key id: anyone may send a
 * text that names one.
 */
const KEYS_RELOAD_MIN_INTERVAL_MS = 500;

/** Where the keys are: in a file, created when missing, or in text (from `TESSERA_KEYS`). */
type KeysSource =
  | {
      readonly path: string;
      /**
       * Creates a missing file. Default true: a new platform has no keys yet. False
       * for an existing database.
       */
      readonly create?: boolean;
    }
  | { readonly env: string };

/** A digest of a token's value, and the key that made it. */
interface KeyedDigest {
  readonly keyId: string;
  readonly digest: string;
}

/**
 * Loads the keys. Throws an Error with a message for the operator when they are
 * broken, missing or readable by others.
 */
export function loadKeys(source: KeysSource): KeyRing {
  if ("path" in source && source.create !== false) {
    createKeysFile(source.path);
  }
  return new KeyRing(() =>
    "path" in source ? readKeysFile(source.path) : parseKeys(source.env, "TESSERA_KEYS"),
  );
}

/** A key for one purpose, of which nothing leads back to the secret or to the other purposes. */
export function derivedKey(secret: KeyObject | Uint8Array, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, new Uint8Array(0), purpose, 32));
}

/** The sealing context of a token's value. */
export function sealingContext(organizationId: string, tokenId: string): string {
  return `${organizationId}/${tokenId}`;
}

/** The sealing context of a deployment's secret. */
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

/** What a token for the source of a model is sealed for. */
export function modelTokenContext(organizationId: string, model: string, pinned: string): string {
  return `model/${organizationId}/${model}/${pinned}`;
}

/** What the secrets of a webhook are sealed for. */
export function webhookContext({
  organizationId,
  deploymentId,
  webhookId,
}: {
  readonly organizationId: string;
  readonly deploymentId: string;
  readonly webhookId: string;
}): string {
  return `webhook/${organizationId}/${deploymentId}/${webhookId}`;
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

  /** Reads the keys again. When they cannot be read, throws and keeps the current ones. */
  reload(): void {
    const { digest, seal } = this.#read();
    this.#digestKeys = digest.map(importKey);
    this.#sealKeys = seal.map(importKey);
  }

  /** Digests a token's value under every key, the current one first. */
  digests(value: string): readonly [KeyedDigest, ...KeyedDigest[]] {
    const [current, ...others] = this.#digestKeys.map(({ id, key }) => ({
      keyId: id,
      digest: hmac(key, value),
    }));
    return [orThrow(current), ...others];
  }

  /** Digests a new value under the current key, for storage. */
  digest(value: string): KeyedDigest {
    const { id, key } = orThrow(this.#digestKeys[0]);
    return { keyId: id, digest: hmac(key, value) };
  }

  /** Digests a code that a person types. A code made before a rotation is not found after it. */
  digestUserCode(code: string): string {
    return hmac(orThrow(this.#digestKeys[0]).key, `user code ${code}`);
  }

  /** Keys for another purpose than digests, one from each digest key, the current one first. */
  derived(purpose: string): readonly Uint8Array[] {
    return this.#digestKeys.map(({ key }) => derivedKey(key, purpose));
  }

  /** Seals a text for one context. */
  seal(plain: string, context: string): string {
    return seal(orThrow(this.#sealKeys[0]), plain, context);
  }

  /**
   * Opens a sealed value. Throws when it was changed, belongs to another
   * context, or its key is gone.
   */
  unseal(sealed: string, context: string): string {
    const id = sealed.split(".", 1)[0] ?? "";
    const found = this.#findSealKey(id);
    if (found === undefined) {
      throw new Error(`no key opens this sealed value: it names the key ${JSON.stringify(id)}`);
    }
    return unseal(found, sealed, context);
  }

  /** An unknown key may be newer than this node's last read, so the keys are reloaded once. */
  #findSealKey(id: string): Key | undefined {
    const find = () => this.#sealKeys.find((each) => each.id === id);
    const nowMs = performance.now();
    const known = find();
    if (known !== undefined || nowMs - this.#lookedAgainMs < KEYS_RELOAD_MIN_INTERVAL_MS) {
      return known;
    }
    this.#lookedAgainMs = nowMs;
    try {
      this.reload();
    } catch {
      // Keeps the current keys; an explicit `reload` reports the error.
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

/** `parseKeys` guarantees a key of each kind. */
function orThrow<Value>(value: Value | undefined): Value {
  if (value === undefined) {
    throw new Error("the key ring is empty");
  }
  return value;
}
