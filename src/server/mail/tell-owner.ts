/** Tells the owner of an account by mail what ended when they proved their address. */
import type { Log } from "../../log/log.ts";
import type { EndedCredentials } from "../../storage/accounts/people.ts";
import { letter } from "./letter.ts";
import type { Mail, Mailer } from "./mailer.ts";

/**
 * Sends the mail, if the platform sends mail, without waiting: the sign-in has
 * succeeded, and the page and the audit log tell the same.
 */
export function tellOwner(
  { mailer, log }: { readonly mailer: Mailer | undefined; readonly log: Pick<Log, "warn"> },
  about: {
    readonly email: string;
    readonly ended: EndedCredentials;
    /** Where people reach the platform, without a trailing slash. */
    readonly publicUrl: string;
  },
): void {
  mailer
    ?.send(endedCredentialsMail(about))
    .catch((err: unknown) =>
      log.warn({ err }, "the owner of an account could not be told by mail"),
    );
}

/** Tells the owner of an account what ended when they proved their address. */
export function endedCredentialsMail({
  email,
  ended,
  publicUrl,
}: {
  readonly email: string;
  readonly ended: EndedCredentials;
  readonly publicUrl: string;
}): Mail {
  return letter({ to: email, subject: "Your Tessera account was used before you came" }, [
    `An account for ${email} existed before anybody had proved that this address is theirs. You have just proved it, so the account is yours alone now.`,
    `Somebody else may have made the account and used it. Therefore this has ended: ${list(ended)}.`,
    "If it was you who used it, sign in again and make new tokens. If it was not, look at the organizations that you belong to, leave those that you do not know, and tell an admin of the others: what the account did is in their audit logs.",
    { url: `${publicUrl}/` },
  ]);
}

function list(ended: EndedCredentials): string {
  const { password, sessions, personalTokens, organizationTokens, invitations } = ended;
  return [
    ...(password ? ["its password"] : []),
    count(sessions, "session"),
    count(personalTokens, "personal token"),
    count(organizationTokens, "organization token"),
    count(invitations, "open invitation"),
  ].join(", ");
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}
