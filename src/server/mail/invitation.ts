import { letter } from "./letter.ts";
import type { Mail } from "./mailer.ts";

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
