import { createContextValues } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import {
  allowEveryone,
  principalOf,
  requireToken,
  setPrincipal,
} from "../../src/auth/principal.ts";
import { toProblem } from "../../src/errors.ts";
import { shown } from "./shown.ts";

const TOKEN = "correct-horse-battery";

function credentials(authorization: string | undefined) {
  return { authorization, cookie: undefined, address: "127.0.0.1" };
}

function refusal(authorization: string | undefined) {
  try {
    requireToken(TOKEN)(credentials(authorization));
  } catch (err) {
    return toProblem(err);
  }
  return undefined;
}

describe("a shared token", () => {
  it.each([`Bearer ${TOKEN}`, `bearer ${TOKEN}`, `BEARER   ${TOKEN}  `])("opens: %j", (header) => {
    expect(requireToken(TOKEN)(credentials(header))).toEqual({ kind: "shared" });
  });

  it.each(shown(undefined, "", TOKEN, "Bearer", "Bearer ", `Basic ${TOKEN}`, `Bearer${TOKEN}`))(
    "is missing, and nothing of the header is said: %s",
    (_shown, header) => {
      const found = refusal(header);
      expect(found).toMatchObject({ reason: "TOKEN_MISSING" });
      expect(found?.message).not.toContain(TOKEN);
    },
  );

  it.each(
    shown(
      `Bearer ${TOKEN}x`,
      `Bearer ${TOKEN.slice(0, -1)}`,
      `Bearer ${TOKEN.toUpperCase()}`,
      `Bearer ${TOKEN} ${TOKEN}`,
      `Bearer x, Bearer ${TOKEN}`,
      `Bearer ${"x".repeat(100_000)}`,
    ),
  )("is refused with the same words whatever is wrong: %s", (_shown, header) => {
    const found = refusal(header);
    expect(found).toMatchObject({
      reason: "TOKEN_INVALID",
      rawMessage: refusal("Bearer x")?.rawMessage,
    });
    expect(found?.message).not.toContain(TOKEN);
  });
});

it("asks nobody where there is no token", () => {
  expect(allowEveryone(credentials(undefined))).toEqual({ kind: "anonymous" });
  expect(allowEveryone(credentials("Bearer whatever"))).toEqual({ kind: "anonymous" });
});

it("remembers who is calling with the request", () => {
  const values = createContextValues();
  expect(principalOf(values)).toBeUndefined();
  expect(principalOf(setPrincipal(values, { kind: "shared" }))).toEqual({ kind: "shared" });
});
