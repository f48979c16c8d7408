/** Tells the owner of an account by mail what ended when they proved their address. */
import type { Log } from "../../log/log.ts";
import type { EndedCredentials } from "../../storage/accounts/people.ts";
import { endedCredentialsMail } from "./ended-credentials.ts";
import type { Mailer } from "./mailer.ts";

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
