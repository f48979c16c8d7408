import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { loadKeys, sealingContext } from "../../src/auth/keys.ts";
import { rotateKeys } from "../../src/auth/keys-file.ts";

const root = mkdtempSync(join(tmpdir(), "tessera-keys-"));
afterAll(() => rmSync(root, { recursive: true }));

let path: string;
let count = 0;
beforeEach(() => {
  count += 1;
  path = join(root, String(count), "keys.json");
});

/** Fails when the message does not say what to do. */
function messageOf(action: () => unknown): string {
  try {
    action();
  } catch (err) {
    return (err as Error).message;
  }
  throw new Error("nothing was thrown");
}

describe("the file of the keys", () => {
  it("is made at first start, for its owner alone, and used from then on", () => {
    const { keyId, digest } = loadKeys({ path }).digest("value");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(path, ".."))).toEqual(["keys.json"]);
    expect(loadKeys({ path }).digest("value")).toEqual({ keyId, digest });
  });

  it("is not made where the platform is older than it", () => {
    expect(messageOf(() => loadKeys({ path, create: false }))).toContain("restore the file");
    expect(existsSync(path)).toBe(false);
  });

  it.each([0o640, 0o604, 0o660, 0o644])("is refused with mode %o", (mode) => {
    loadKeys({ path });
    chmodSync(path, mode);
    expect(messageOf(() => loadKeys({ path }))).toContain(`chmod 600 ${path}`);
  });

  it.each(["", "{", "[]", "{}", '{"digest":[],"seal":[]}', '{"digest":[{"id":"a","key":"AAAA"}]}'])(
    "is refused when it holds %j, without repeating it",
    (text) => {
      loadKeys({ path });
      writeFileSync(path, text);
      const message = messageOf(() => loadKeys({ path }));
      expect(message).toContain(path);
      expect(message).not.toContain("AAAA");
    },
  );

  it("can be in the environment instead", () => {
    const { digest } = loadKeys({ path }).digest("value");
    expect(loadKeys({ env: readFileSync(path, "utf8") }).digest("value").digest).toBe(digest);
    expect(messageOf(() => loadKeys({ env: "secret" }))).toMatch(/^TESSERA_KEYS is not JSON/);
  });
});

describe("a rotation of the keys", () => {
  it("gives new current keys and keeps the old ones, in the same file mode", () => {
    const keys = loadKeys({ path });
    const before = { digest: keys.digest("value"), sealed: keys.seal("plain", "a/b") };
    rotateKeys(path);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(keys.digest("value")).toEqual(before.digest);
    keys.reload();
    const [current, ...old] = keys.digests("value");
    expect(current).toEqual(keys.digest("value"));
    expect(current.digest).not.toBe(before.digest.digest);
    expect(old).toEqual([before.digest]);
    expect(keys.unseal(before.sealed, "a/b")).toBe("plain");
    expect(keys.isSealCurrent(before.sealed)).toBe(false);
    expect(keys.isSealCurrent(keys.seal("plain", "a/b"))).toBe(true);
  });

  it("does not happen twice at once", () => {
    loadKeys({ path });
    const text = readFileSync(path, "utf8");
    writeFileSync(`${path}.new`, "");
    expect(messageOf(() => rotateKeys(path))).toContain(`remove ${path}.new`);
    expect(readFileSync(path, "utf8")).toBe(text);
  });

  it("has an end, so that a lookup does", () => {
    loadKeys({ path });
    for (let index = 1; index < 32; index += 1) {
      rotateKeys(path);
    }
    expect(messageOf(() => rotateKeys(path))).toContain("take out some");
  });

  it("that cannot be read leaves a node with the keys it has", () => {
    const keys = loadKeys({ path });
    const before = keys.digest("value");
    writeFileSync(path, "broken");
    expect(() => keys.reload()).toThrow("not JSON");
    expect(keys.digest("value")).toEqual(before);
  });
});

describe("sealed text", () => {
  it("opens to what it was, and shows nothing of it", () => {
    const keys = loadKeys({ path });
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.string(), (plain, context) => {
        const sealed = keys.seal(plain, context);
        expect(keys.unseal(sealed, context)).toBe(plain);
        expect(keys.seal(plain, context)).not.toBe(sealed);
        expect(plain.length > 3 && sealed.includes(plain)).toBe(false);
      }),
      { numRuns: 50 },
    );
  });

  it("does not open elsewhere, changed, or with other keys", () => {
    const keys = loadKeys({ path });
    const sealed = keys.seal("plain", sealingContext("organization", "token"));
    const [id, text = ""] = sealed.split(".");
    const flipped = Buffer.from(text, "base64url");
    for (let index = 0; index < flipped.length; index += 1) {
      const changed = Buffer.from(flipped);
      changed[index] = (changed[index] ?? 0) ^ 1;
      expect(() =>
        keys.unseal(`${id}.${changed.toString("base64url")}`, "organization/token"),
      ).toThrow();
    }
    expect(() => keys.unseal(sealed, sealingContext("organization", "other"))).toThrow();
    expect(() => keys.unseal(`x${sealed}`, "organization/token")).toThrow("no key opens");
    expect(() => keys.unseal("", "organization/token")).toThrow("no key opens");
    const others = loadKeys({ path: `${path}.other` });
    expect(() => others.unseal(sealed, "organization/token")).toThrow("no key opens");
    expect(keys.unseal(sealed, "organization/token")).toBe("plain");
  });
});

it("digests a code that was typed apart from tokens", () => {
  const keys = loadKeys({ path });
  expect(keys.digestUserCode("BCDF-GHJK")).toMatch(/^[\w-]{43}$/);
  expect(keys.digestUserCode("BCDF-GHJK")).not.toBe(keys.digest("BCDF-GHJK").digest);
});
