import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { invitationMail } from "../../../src/server/mail/letter.ts";
import { SmtpMailer, type SmtpOptions } from "../../../src/server/mail/smtp.ts";
import { SmtpServer } from "./smtp-server.ts";

const MAIL = invitationMail({
  email: "grace@example.com",
  organization: "acme",
  invitedBy: "o'brien&co@example.com",
  role: "admin",
  url: "https://tessera.example/invitation#code=abc",
  expiresAtMs: Date.UTC(2030, 0, 2, 3, 4, 5),
});

function mailerFor({ port }: SmtpServer, options: Partial<SmtpOptions> = {}): SmtpMailer {
  const server = { host: "127.0.0.1", port, secure: false, login: undefined };
  return new SmtpMailer({ ...server, from: "tessera@example.com", ...options });
}

describe("a mail", () => {
  it("says who invites, to what, as what, by which link and how long", async () => {
    await using server = await SmtpServer.listen();
    await mailerFor(server).send(MAIL);
    const [mail] = server.mails;
    expect(mail).toMatchObject({ from: "tessera@example.com", to: ["grace@example.com"] });
    expect(mail?.headers).toMatchObject({
      subject: "Invitation to acme on Tessera",
      to: "grace@example.com",
      "auto-submitted": "auto-generated",
    });
    for (const part of [mail?.text, mail?.html]) {
      expect(part).toContain("to join the organization acme as an admin");
      expect(part).toContain("https://tessera.example/invitation#code=abc");
      expect(part).toContain("until Wed, 02 Jan 2030 03:04:05 GMT");
    }
    expect(mail?.text).toContain("o'brien&co@example.com invites you");
    expect(mail?.html).toContain("o&#39;brien&amp;co@example.com invites you");
  });
});

describe("a delivery", () => {
  it("logs in, on this machine also without TLS", async () => {
    await using server = await SmtpServer.listen({ offers: ["AUTH PLAIN"] });
    await mailerFor(server, { login: { user: "me", password: "secret" } }).send(MAIL);
    const plain = Buffer.from("\0me\0secret").toString("base64");
    expect(server.commands).toContain(`AUTH PLAIN ${plain}`);
    expect(server.mails).toHaveLength(1);
  });

  it("tells no password and no link when it fails", async () => {
    const answers = { AUTH: "535 wrong" };
    await using server = await SmtpServer.listen({ offers: ["AUTH PLAIN"], answers });
    const mailer = mailerFor(server, { login: { user: "me", password: "secret" } });
    const err = await mailer.send(MAIL).catch((thrown: Error) => thrown);
    expect(err).toBeInstanceOf(Error);
    const plain = Buffer.from("\0me\0secret").toString("base64");
    for (const hidden of ["secret", plain, "#code="]) {
      expect(inspect(err, { depth: 9, showHidden: true })).not.toContain(hidden);
    }
  });

  it("fails when the server refuses the person", async () => {
    await using server = await SmtpServer.listen({ answers: { RCPT: "550 no such person" } });
    await expect(mailerFor(server).send(MAIL)).rejects.toThrow("550 no such person");
    expect(server.mails).toEqual([]);
  });

  it("fails when the server does not answer in time", async () => {
    await using server = await SmtpServer.listen({ answers: { EHLO: "" } });
    const mailer = mailerFor(server, { deliveryTimeoutMs: 50 });
    await expect(mailer.send(MAIL)).rejects.toThrow("did not take the mail within 50 ms");
  });

  it("fails when nobody listens", async () => {
    const server = await SmtpServer.listen();
    const mailer = mailerFor(server);
    await server[Symbol.asyncDispose]();
    await expect(mailer.send(MAIL)).rejects.toThrow("ECONNREFUSED");
  });

  it("sends no login to another machine without TLS", async () => {
    const answers = { STARTTLS: "502 no TLS here" };
    await using server = await SmtpServer.listen({ offers: ["AUTH PLAIN"], answers });
    // A name of this machine that does not look like one.
    const login = { user: "me", password: "secret" };
    const mailer = mailerFor(server, { host: "0:0:0:0:0:ffff:127.0.0.1", login });
    await expect(mailer.send(MAIL)).rejects.toThrow("STARTTLS");
    expect(server.commands.filter((line) => line.startsWith("AUTH"))).toEqual([]);
  });
});
