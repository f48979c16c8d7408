import { expect, it } from "vitest";
import { bodyOf } from "../../src/client/arguments.ts";

it("a bigint is sent as the integer that it is, in JSON and in a form", async () => {
  const id = 2n ** 64n - 1n;
  expect(bodyOf({ id, more: [id] }).make()).toBe(
    '{"id":18446744073709551615,"more":[18446744073709551615]}',
  );
  const form = bodyOf({ id, image: new Blob(["x"]) }).make() as FormData;
  expect(form.get("id")).toBe("18446744073709551615");
});

it("one object alone is sent as arguments by name, not as the value of a root argument", () => {
  const named = "application/vnd.tessera.arguments+json";
  expect(bodyOf({ data: { a: 1 } }).contentType).toBe(named);
  for (const values of [{}, { data: [1] }, { data: { a: 1 }, more: 1 }, { data: null }]) {
    expect(bodyOf(values).contentType).toBe("application/json");
  }
});
