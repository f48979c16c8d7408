import { expect, it } from "vitest";
import { endedCredentialsMail } from "../../../src/server/mail/tell-owner.ts";

it("a mail says what ended with the first proof of an address", () => {
  const ended = {
    password: true,
    sessions: 1,
    personalTokens: 2,
    organizationTokens: 0,
    invitations: 0,
  };
  const publicUrl = "https://tessera.example";
  const { text, to } = endedCredentialsMail({ email: "grace@example.com", ended, publicUrl });
  expect(to).toBe("grace@example.com");
  expect(text).toContain(
    "this has ended: its password, 1 session, 2 personal tokens, 0 organization tokens, 0 open invitations.",
  );
});
