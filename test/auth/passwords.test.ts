import { parseOptions } from "@node-rs/argon2";
import { describe, expect, it } from "vitest";
import {
  checkPassword,
  DUMMY_HASH,
  hashPassword,
  PASSWORD_COST,
  verifyPassword,
} from "../../src/auth/passwords.ts";
import { toProblem } from "../../src/errors.ts";
import { shown } from "./shown.ts";

describe("a password", () => {
  it("is verified by its hash, and nothing else is", async () => {
    const hash = await hashPassword("correct horse battery");
    expect(hash).toMatch(/^\$argon2id\$/);
    expect(await verifyPassword(hash, "correct horse battery")).toBe(true);
    expect(await verifyPassword(hash, "correct horse batterz")).toBe(false);
    expect(await verifyPassword(hash, "")).toBe(false);
    expect(await verifyPassword(hash, "x".repeat(10_000_000))).toBe(false);
    expect(await hashPassword("correct horse battery")).not.toBe(hash);
  });

  it("is the same however the keyboard puts its accents together", async () => {
    const hash = await hashPassword("Stra\u00dfenb\u00e4nder");
    expect(await verifyPassword(hash, "Stra\u00dfenba\u0308nder")).toBe(true);
  });

  it("is hashed at a cost above what OWASP asks for, also for a person who does not exist", async () => {
    const cost = ({ memoryCost, timeCost, parallelism }: typeof PASSWORD_COST) => ({
      memoryCost,
      timeCost,
      parallelism,
    });
    expect(PASSWORD_COST.memoryCost).toBeGreaterThanOrEqual(19 * 1_024);
    expect(PASSWORD_COST.timeCost).toBeGreaterThanOrEqual(2);
    const hash = await hashPassword("correct horse battery");
    const dummy = parseOptions(DUMMY_HASH);
    expect(dummy).toEqual(parseOptions(hash));
    expect(dummy).toMatchObject(cost(PASSWORD_COST));
  });

  it("is never that of a person who does not exist", async () => {
    expect(await verifyPassword(undefined, "correct horse battery")).toBe(false);
  });

  it.each(shown("", "short", "123456789", "x".repeat(1_001), "\u{1f600}".repeat(9)))(
    "is refused when it is too short or too long: %s",
    (_shown, password) => {
      try {
        checkPassword(password, "new_password");
        expect.unreachable();
      } catch (err) {
        expect(toProblem(err)).toMatchObject({
          reason: "REQUEST_INVALID",
          violations: [{ field: "new_password" }],
        });
        expect(password === "" || !String(err).includes(password)).toBe(true);
      }
    },
  );

  it.each(
    shown("1234567890", "x".repeat(1_000), "\u{1f600}".repeat(10), "\u{1f600}".repeat(1_000)),
  )("may be %s", (_shown, password) => checkPassword(password));
});

it("hashes so many passwords at once, lets some wait, and refuses the rest", async () => {
  const results = await Promise.allSettled(
    Array.from({ length: 110 }, () => verifyPassword(undefined, "correct horse battery")),
  );
  const refused = results.filter(({ status }) => status === "rejected");
  expect(refused).toHaveLength(8);
  for (const each of refused) {
    expect(toProblem((each as PromiseRejectedResult).reason)).toMatchObject({
      reason: "SERVER_BUSY",
      retryAfterMs: 2_000,
    });
  }
  expect(await verifyPassword(undefined, "correct horse battery")).toBe(false);
});

it("lets who is known go ahead of strangers, also when those have filled the queue", async () => {
  const order: string[] = [];
  const verify = (who: string, ahead: boolean) =>
    verifyPassword(undefined, "correct horse battery", { ahead }).then(() => void order.push(who));
  const strangers = Array.from({ length: 102 }, () => verify("stranger", false));
  await expect(verify("stranger", false)).rejects.toThrow("too many");
  await expect(hashPassword("correct horse battery")).rejects.toThrow("too many");
  const hashed = hashPassword("correct horse battery", { ahead: true });
  await verify("known", true);
  expect(await hashed).toMatch(/^\$argon2id\$/);
  expect(order.length).toBeLessThan(10);
  await Promise.all(strangers);
});
