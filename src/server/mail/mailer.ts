/** The mail port. A platform without a mail server has no mailer. */
export interface Mailer {
  /**
   * Hands a mail to the mail server. Rejects when the server has not taken it
   * within a bounded time; then it may still arrive.
   */
  send(mail: Mail): Promise<void>;
}

/** A mail to one person. */
export interface Mail {
  /** A single e-mail address. */
  readonly to: string;
  /** One line. */
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}
