import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BASE62, createRandomText, randomBase62 } from "../../src/auth/random.ts";
import {
  createTokenValue,
  parseTokenValue,
  TOKEN_LENGTH,
  TOKEN_PATTERN,
} from "../../src/auth/token-format.ts";
import { threadTimer } from "../thread-time.ts";

const LETTERS = ["p", "o", "m"] as const;
const letter = fc.constantFrom(...LETTERS);

describe("a token's value", () => {
  it.each(LETTERS)("of the letter %s is read back with its hint", (kind) => {
    const value = createTokenValue(kind);
    expect(value).toHaveLength(TOKEN_LENGTH);
    expect(value).toMatch(TOKEN_PATTERN);
    expect(parseTokenValue(value)).toEqual({ letter: kind, hint: value.slice(0, 9) });
  });

  it("has the checksum of CRC-32 in base62, which others can compute", () => {
    expect(parseTokenValue("tsrp_0000000000000000000000000000004upjL3")).toBeUndefined();
    expect(parseTokenValue(`tsrp_${"0".repeat(30)}${CHECKSUM_OF_ZEROS}`)).toBeDefined();
  });

  it("is refused with any one character changed", () => {
    fc.assert(
      fc.property(
        letter,
        fc.nat({ max: TOKEN_LENGTH - 1 }),
        fc.constantFrom(...BASE62),
        (kind, at, character) => {
          const value = createTokenValue(kind);
          const changed = value.slice(0, at) + character + value.slice(at + 1);
          expect(parseTokenValue(changed) !== undefined).toBe(changed === value);
        },
      ),
    );
  });

  it("is refused with two neighbours swapped", () => {
    fc.assert(
      fc.property(letter, fc.nat({ max: TOKEN_LENGTH - 2 }), (kind, at) => {
        const value = createTokenValue(kind);
        const swapped =
          value.slice(0, at) + value.charAt(at + 1) + value.charAt(at) + value.slice(at + 2);
        expect(parseTokenValue(swapped) !== undefined).toBe(swapped === value);
      }),
    );
  });

  it("is refused cut short, or with anything around it", () => {
    const value = createTokenValue("p");
    for (const text of [
      "",
      value.slice(1),
      value.slice(0, -1),
      `${value} `,
      ` ${value}`,
      `${value}\n`,
      value.toUpperCase(),
      value + value,
      `ghp_${value.slice(5)}`,
      value.replace("tsrp", "tsrx"),
      value.replace("_", "-"),
    ]) {
      expect(parseTokenValue(text)).toBeUndefined();
    }
  });

  it("is refused at once when it is huge", () => {
    const huge = "x".repeat(10_000_000);
    const tookMs = threadTimer();
    expect(parseTokenValue(huge)).toBeUndefined();
    expect(tookMs()).toBeLessThan(100);
  });

  it("is refused whatever else it is", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 60 }), (text) => {
        expect(parseTokenValue(text)).toBeUndefined();
      }),
    );
  });

  it("is found in a text by the published pattern, and nothing longer is", () => {
    const value = createTokenValue("o");
    expect(TOKEN_PATTERN.exec(`key = "${value}";`)?.[0]).toBe(value);
    expect(TOKEN_PATTERN.test(`${value}0`)).toBe(false);
  });
});

/** Of `tsrp_` and 30 zeros: CRC-32 3069625832. */
const CHECKSUM_OF_ZEROS = "3Ljpu4";

describe("random text", () => {
  it("has every character of the alphabet equally often", () => {
    const counts = new Map<string, number>();
    const length = 620_000;
    for (const character of randomBase62(length)) {
      counts.set(character, (counts.get(character) ?? 0) + 1);
    }
    expect(counts.size).toBe(BASE62.length);
    const expected = length / BASE62.length;
    const chiSquare = [...counts.values()].reduce(
      (sum, count) => sum + (count - expected) ** 2 / expected,
      0,
    );
    // 61 degrees of freedom: beyond 140 once in 30 million runs.
    expect(chiSquare).toBeLessThan(140);
  });

  it("does not repeat", () => {
    const values = Array.from({ length: 10_000 }, () => createTokenValue("p"));
    expect(new Set(values).size).toBe(values.length);
  });

  it("has the length asked for, with any alphabet", () => {
    fc.assert(
      fc.property(fc.nat({ max: 3_000 }), fc.integer({ min: 1, max: 62 }), (length, size) => {
        const alphabet = BASE62.slice(0, size);
        const text = createRandomText(alphabet)(length);
        expect(text).toHaveLength(length);
        expect([...text].every((character) => alphabet.includes(character))).toBe(true);
      }),
    );
  });
});
