/** Who makes a change, for the audit log. */
export interface Actor {
  /** An e-mail address, `token <name>`, or `operator`. */
  readonly name: string;
  /** The id of the user or the token; empty for the operator. */
  readonly id: string;
  /** The address that the request came from; empty for the operator. */
  readonly address: string;
  /**
   * The personal token that a person used; undefined for a session, an
   * organization token and the operator.
   */
  readonly token?: { readonly id: string; readonly name: string };
  /** The session of a person. What makes a credential checks that it has not ended. */
  readonly sessionId?: string;
}

/** The audit data that every change carries. */
export interface Deed {
  readonly by: Actor;
  readonly nowMs: number;
  /** The id of the audit event, a UUID that sorts by time. */
  readonly eventId: string;
}
