import { describe, expect, it } from "vitest";
import { createCode, digestCode } from "../../src/auth/one-time-codes.ts";
import {
  clearSessionCookie,
  newSession,
  readSessionCookie,
  SESSION_LIFETIME_MS,
  writeSessionCookie,
} from "../../src/auth/session-cookie.ts";
import { shown } from "./shown.ts";

const VALUE = createCode();

describe("the session's cookie", () => {
  it.each([
    `tessera_session=${VALUE}`,
    `a=b; tessera_session=${VALUE}; c=d`,
    `a=b;tessera_session=${VALUE}`,
    `not_tessera_session=x; tessera_session=${VALUE}`,
  ])("is found in %j", (header) => {
    expect(readSessionCookie(header, false)).toBe(VALUE);
    const secure = header
      .replace("; tessera_", "; __Host-tessera_")
      .replace(/^tessera_|;tessera_/, (found) => found.replace("tessera_", "__Host-tessera_"));
    expect(readSessionCookie(secure, true)).toBe(VALUE);
  });

  it.each(
    shown(
      undefined,
      "",
      "a=b",
      "tessera_session=",
      "tessera_session=short",
      `tessera_session="${VALUE}"`,
      `xtessera_session=${VALUE}`,
      `tessera_session=${VALUE}x`,
      `a=tessera_session=${VALUE}`,
      `tessera_session=${"x".repeat(100_000)}`,
    ),
  )("is not found in %s", (_shown, header) => {
    expect(readSessionCookie(header, false)).toBeUndefined();
  });

  it("counts as none when there are two, of which somebody may have planted one", () => {
    const header = `tessera_session=${createCode()}; tessera_session=${VALUE}`;
    expect(readSessionCookie(header, false)).toBeUndefined();
  });

  it("counts by the name that goes with the scheme alone, so that no other host can plant it under https", () => {
    const plain = `tessera_session=${VALUE}`;
    const bound = `__Host-tessera_session=${VALUE}`;
    expect(readSessionCookie(plain, true)).toBeUndefined();
    expect(readSessionCookie(bound, false)).toBeUndefined();
    const planted = `tessera_session=${createCode()}; ${bound}`;
    expect(readSessionCookie(planted, true)).toBe(VALUE);
  });

  it("is for no script, for no other site, for this host, and under https for nothing else", () => {
    const options = { secure: true, expiresAtMs: Date.UTC(2026, 10, 20) };
    expect(writeSessionCookie(VALUE, options)).toBe(
      `__Host-tessera_session=${VALUE}; Path=/; Expires=Fri, 20 Nov 2026 00:00:00 GMT; HttpOnly; SameSite=Lax; Secure`,
    );
    const plain = writeSessionCookie(VALUE, { ...options, secure: false });
    expect(plain).toMatch(/^tessera_session=/);
    expect(plain).not.toContain("Secure");
  });

  it("is taken back by one that has expired", () => {
    expect(clearSessionCookie({ secure: false })).toBe(
      "tessera_session=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; SameSite=Lax",
    );
  });
});

it("makes a session that ends in time, of which only the digest is stored", () => {
  const { value, session } = newSession(1_000);
  expect(session).toEqual({
    sessionId: expect.any(String),
    digest: digestCode(value),
    client: "",
    expiresAtMs: 1_000 + SESSION_LIFETIME_MS,
  });
  expect(JSON.stringify(session)).not.toContain(value);
  expect(newSession(1_000, { lifetimeMs: 60_000 }).session.expiresAtMs).toBe(61_000);
});
