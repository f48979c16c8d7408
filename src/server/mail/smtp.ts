/** The SMTP adapter of the mail port, over nodemailer. Each mail has a connection of its own: they are rare. */
import { createTransport } from "nodemailer";
import { within } from "../../time/race.ts";
import type { Mail, Mailer } from "./mailer.ts";

/** How long a mail server may take to accept a connection, and to greet: an admin waits for it. */
const SMTP_CONNECT_TIMEOUT_MS = 10_000;
/** How long a mail server may be silent during a delivery. */
const SMTP_SILENCE_TIMEOUT_MS = 10_000;
/** How long the delivery of a mail to the mail server may take. */
const SMTP_DELIVERY_TIMEOUT_MS = 30_000;
/** Longest single answer of a mail server that is read. */
const MAX_SMTP_ANSWER_BYTES = 64 * 1024;

export interface SmtpOptions {
  readonly host: string;
  readonly port: number;
  /** True for TLS from the first byte; otherwise STARTTLS is used where the server offers it. */
  readonly secure: boolean;
  /** With a login, TLS is required, except on this machine. */
  readonly login: { readonly user: string; readonly password: string } | undefined;
  /** The sender's address. */
  readonly from: string;
  /** Default: 30 s. */
  readonly deliveryTimeoutMs?: number;
}

export class SmtpMailer implements Mailer {
  readonly #options: SmtpOptions;

  constructor(options: SmtpOptions) {
    this.#options = options;
  }

  async send({ to, subject, text, html }: Mail): Promise<void> {
    const { from, deliveryTimeoutMs = SMTP_DELIVERY_TIMEOUT_MS } = this.#options;
    const transport = createTransport(transportOptions(this.#options));
    const delivery = transport.sendMail({
      // As objects, addresses are not parsed, so that one can never become several.
      from: { name: "Tessera", address: from },
      to: { name: "", address: to },
      envelope: { from, to: [to] },
      subject,
      text,
      html,
      // RFC 3834, section 5: no automatic replies.
      headers: { "Auto-Submitted": "auto-generated" },
      disableFileAccess: true,
      disableUrlAccess: true,
    });
    try {
      await within(delivery, deliveryTimeoutMs, () => {
        throw new Error(`the mail server did not take the mail within ${deliveryTimeoutMs} ms`);
      });
    } finally {
      transport.close();
    }
  }
}

function transportOptions({ host, port, secure, login }: SmtpOptions) {
  return {
    host,
    port,
    secure,
    ...(login && { auth: { user: login.user, pass: login.password } }),
    requireTLS: login !== undefined && !secure && !isLoopback(host),
    connectionTimeout: SMTP_CONNECT_TIMEOUT_MS,
    dnsTimeout: SMTP_CONNECT_TIMEOUT_MS,
    greetingTimeout: SMTP_CONNECT_TIMEOUT_MS,
    socketTimeout: SMTP_SILENCE_TIMEOUT_MS,
    maxResponseSize: MAX_SMTP_ANSWER_BYTES,
  };
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}
