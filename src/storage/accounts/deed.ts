/** Who does something, for the audit log. */
export interface Actor {
  /** An e-mail address, `token <name>`, or `operator`. */
  readonly name: string;
  /** Whose id it is: a user's, a token's, or empty for the operator. */
  readonly id: string;
  /** Where the request came from; empty for the operator. */
  readonly address: string;
  /** The personal token that a person used; undefined for a session, and for who acts for themselves. */
  readonly token?: { readonly id: string; readonly name: string };
}

/** Comes with everything that changes something. */
export interface Deed {
  readonly by: Actor;
  readonly nowMs: number;
  /** For the audit event: a UUIDv7. */
  readonly eventId: string;
}
