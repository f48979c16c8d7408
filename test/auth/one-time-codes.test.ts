import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  createCode,
  createUserCode,
  digestCode,
  isCode,
  normalizeUserCode,
} from "../../src/auth/one-time-codes.ts";
import { shown } from "./shown.ts";

describe("a code", () => {
  it("holds 256 bits and is like no other", () => {
    const codes = Array.from({ length: 1_000 }, createCode);
    expect(new Set(codes).size).toBe(codes.length);
    expect(codes.every(isCode)).toBe(true);
    expect(62n ** 43n >= 1n << 256n).toBe(true);
  });

  it.each(["", "abc", `${"a".repeat(42)}_`, "a".repeat(44), `${"a".repeat(43)}\n`])(
    "is not %j",
    (text) => {
      expect(isCode(text)).toBe(false);
    },
  );

  it("is kept as its SHA-256", () => {
    expect(digestCode("abc")).toBe("ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0");
  });
});

describe("a code to type", () => {
  it("has eight consonants in two groups", () => {
    for (const code of Array.from({ length: 200 }, createUserCode)) {
      expect(code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
      expect(normalizeUserCode(code)).toBe(code);
    }
  });

  it.each([
    "bcdf-ghjk",
    "BCDFGHJK",
    " bcdf ghjk ",
    "b-c-d-f-g-h-j-k",
    "bcdf\u2013ghjk",
    "BCDF_GHJK",
  ])("is understood as %j", (typed) => {
    expect(normalizeUserCode(typed)).toBe("BCDF-GHJK");
  });

  it.each(shown("", "BCDF", "BCDF-GHJ1", "BCDF-GHJA", "BCDF-GHJKL", "x".repeat(100_000)))(
    "cannot be %s",
    (_shown, typed) => {
      expect(normalizeUserCode(typed)).toBeUndefined();
    },
  );

  it("is read the same once it was read", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(..."BCDbcd- _1") }), (typed) => {
        const code = normalizeUserCode(typed);
        expect(code === undefined || normalizeUserCode(code) === code).toBe(true);
      }),
    );
  });
});
