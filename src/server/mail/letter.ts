/** Writes a mail twice: as plain text, and as HTML without pictures, styles or scripts. */
import { alertLines, alertTitle } from "../../hosting/alerts/forms.ts";
import type { AlertMessage } from "../../storage/hosting/alerts.ts";
import type { Mail } from "./mailer.ts";

/** A link on a line of its own, shown as it is: people see where it leads. */
interface Link {
  readonly url: string;
}

/** Paragraphs of plain text, with links between them. */
export function letter(
  { to, subject }: Pick<Mail, "to" | "subject">,
  paragraphs: readonly (string | Link)[],
): Mail {
  const text = paragraphs.map((one) => (typeof one === "string" ? one : one.url)).join("\n\n");
  const html = paragraphs.map(
    (one) => `<p>${typeof one === "string" ? escaped(one) : anchor(one)}</p>`,
  );
  const head = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escaped(subject)}</title></head>`;
  return {
    to,
    subject,
    text: `${text}\n`,
    html: `${head}<body>${html.join("\n")}</body></html>\n`,
  };
}

function anchor({ url }: Link): string {
  return `<a href="${escaped(url)}">${escaped(url)}</a>`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}

interface InvitationMail {
  /** The invited person. */
  readonly email: string;
  readonly organization: string;
  /** Who invites: an e-mail address. */
  readonly invitedBy: string;
  readonly role: "admin" | "member";
  /** The link to join with. */
  readonly url: string;
  readonly expiresAtMs: number;
}

/** The mail that carries an invitation's link. */
export function invitationMail(invitation: InvitationMail): Mail {
  const { email, organization, invitedBy, role, url, expiresAtMs } = invitation;
  const expires = new Date(expiresAtMs).toUTCString();
  const as = role === "admin" ? "an admin" : "a member";
  return letter({ to: email, subject: `Invitation to ${organization} on Tessera` }, [
    `${invitedBy} invites you to join the organization ${organization} as ${as}.`,
    "To join, open this link:",
    { url },
    `It is for ${email} and works once, until ${expires}. Anyone with the link can join in your place, so do not pass it on.`,
    "If you do not know who this is from, you need not do anything.",
  ]);
}

/** The mail about alerts that fire, or have cleared. */
export function alertMail(to: string, message: AlertMessage): Mail {
  const { condition, url, organization } = message.data;
  return letter({ to, subject: alertTitle(message) }, [
    ...alertLines(message),
    ...(condition === "" ? [] : [`The rule: ${condition}.`]),
    { url },
    `You get this because a receiver of alerts of ${organization} has your address. Its developers can remove it.`,
  ]);
}
