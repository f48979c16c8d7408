/**
 * Account linking: finds the person of a provider's identity. It is the person
 * linked to the identity or else, if the provider has verified the e-mail
 * address, the person with that address or with an open invitation to it. All
 * others are refused.
 *
 * An account whose address nobody has proved may have been made by somebody
 * else. The first sign-in by a provider proves it: before the identity is
 * linked, everything by which others could use the account ends, and the person
 * is told.
 *
 * A provider that knows the browser answers without asking the person. So the
 * time of a sign-in is the time that the provider states (`auth_time`), and if
 * it states none, a sign-in does not count as recent. Actions that need a
 * recent sign-in make the person confirm their presence (`confirmBy`).
 */
import type { SessionPrincipal } from "../../auth/principal.ts";
import type { Log } from "../../log/log.ts";
import type { Accounts } from "../../storage/accounts/accounts.ts";
import type { Actor, Deed } from "../../storage/accounts/deed.ts";
import type { EndedCredentials, NewSession, User } from "../../storage/accounts/people.ts";
import type { Mailer } from "../mail/mailer.ts";
import { tellOwner } from "../mail/tell-owner.ts";
import type { Identity } from "./provider.ts";

export interface SignInOptions {
  readonly accounts: Accounts;
  /** Undefined where no mail is sent. */
  readonly mailer: Mailer | undefined;
  /** Where people reach the platform, without a trailing slash. */
  readonly publicUrl: string;
  readonly log: Pick<Log, "warn">;
  readonly now: () => number;
  readonly newId: () => string;
}

/** The reason for which a sign-in or a confirmation was refused. */
export type Refusal = "no_account" | "unverified" | "stale" | "other_person";

/** How much the clocks of provider and platform may differ. */
const OIDC_CLOCK_SKEW_MS = 60_000;

/** The origin of a browser's request. */
interface From {
  readonly address: string;
}

/** How a sign-in ended. */
type SignInOutcome =
  /** `ended` is what the person has to know: it ended with this sign-in. */
  | { readonly outcome: "signed_in"; readonly ended: EndedCredentials | undefined }
  | { readonly outcome: "refused"; readonly reason: Refusal };

const SIGNED_IN: SignInOutcome = { outcome: "signed_in", ended: undefined };

function refused(reason: Refusal): SignInOutcome {
  return { outcome: "refused", reason };
}

/**
 * Opens `session` for the person of an identity, or refuses. A refusal is
 * recorded if it concerns a known person.
 */
export async function signInAs(
  identity: Identity,
  { session, address }: From & { readonly session: NewSession },
  options: SignInOptions,
): Promise<SignInOutcome> {
  const { accounts, now, newId } = options;
  const { verifiedEmail: email, displayName, authenticatedAtMs = 0 } = identity;
  const opened = { ...session, authenticatedAtMs: Math.min(authenticatedAtMs, now()) };
  const user = await personOf(identity, options);
  if (user !== undefined) {
    const ended = await verify(user, { address }, options);
    await link(identity, { person: user, address }, options);
    const deed = deedOf(user, { address }, options);
    await accounts.openSession({ ...deed, userId: user.userId, session: opened });
    return { outcome: "signed_in", ended };
  }
  if (email === undefined) {
    await recordRefusal(
      { email: identity.claimedEmail, reason: "unverified" },
      { address },
      options,
    );
    return refused("unverified");
  }
  const invitation = await accounts.findInvitation({ email, nowMs: now() });
  if (invitation === undefined) {
    return refused("no_account");
  }
  const person = { email, userId: newId() };
  const { outcome } = await accounts.acceptInvitation({
    ...deedOf(person, { address }, options),
    invitationId: invitation.invitationId,
    userId: person.userId,
    newUser: { email, displayName, emailVerified: true },
    session: opened,
  });
  if (outcome !== "joined") {
    // The invitation was revoked, or used in another browser, a moment ago: the next attempt finds out.
    return refused("no_account");
  }
  await link(identity, { person, address }, options);
  return SIGNED_IN;
}

/**
 * Records that the person of a session has confirmed their presence, if the
 * identity is theirs and the provider has authenticated them since
 * `beganAtMs`; otherwise returns the reason. A refusal is recorded.
 */
export async function confirmBy(
  identity: Identity,
  {
    session,
    beganAtMs,
    address,
  }: From & { readonly session: SessionPrincipal; readonly beganAtMs: number },
  options: SignInOptions,
): Promise<Refusal | undefined> {
  const { sessionId, userId, email } = session;
  const isOther = (await personOf(identity, options))?.userId !== userId;
  const isStale = (identity.authenticatedAtMs ?? 0) < beganAtMs - OIDC_CLOCK_SKEW_MS;
  if (isOther || isStale) {
    const reason = isOther ? "other_person" : "stale";
    await recordRefusal({ email, reason }, { address }, options);
    return reason;
  }
  await options.accounts.confirmSession({ sessionId, nowMs: options.now() });
  return undefined;
}

/** The person of an identity: who is linked to it, or has the address that the provider has verified. */
async function personOf(
  { issuer, subject, verifiedEmail: email }: Identity,
  { accounts }: SignInOptions,
): Promise<User | undefined> {
  const known = await accounts.findIdentity({ issuer, subject });
  return known ?? (email === undefined ? undefined : accounts.findUser({ email }));
}

/** Records that the provider has verified a person's address; returns what ended with that. */
async function verify(
  person: User,
  from: From,
  options: SignInOptions,
): Promise<EndedCredentials | undefined> {
  const { userId, email, emailVerified } = person;
  if (emailVerified) {
    return undefined;
  }
  const { accounts, publicUrl } = options;
  const deed = deedOf(person, from, options);
  const ended = await accounts.verifyEmail({ ...deed, userId, way: "oidc" });
  if (ended !== undefined) {
    tellOwner(options, { email, ended, publicUrl });
  }
  return ended;
}

/** Links an identity to its person, if it is not linked yet. */
function link(
  { issuer, subject }: Identity,
  { person, address }: From & { readonly person: Pick<User, "userId" | "email"> },
  options: SignInOptions,
): Promise<void> {
  const deed = deedOf(person, { address }, options);
  return options.accounts.linkIdentity({ ...deed, issuer, subject, userId: person.userId });
}

/** Records a refusal like a wrong password: in every organization of the person, if there is one. */
async function recordRefusal(
  { email, reason }: { readonly email: string | undefined; readonly reason: Refusal },
  from: From,
  options: SignInOptions,
): Promise<void> {
  if (email !== undefined) {
    const deed = deedOf({ email, userId: "" }, from, options);
    const details = { way: "oidc", reason };
    await options.accounts.recordFailedSignIn({ ...deed, email, details });
  }
}

function deedOf(
  { email, userId }: Pick<User, "userId" | "email">,
  { address }: From,
  { now, newId }: SignInOptions,
): Deed {
  const by: Actor = { name: email, id: userId, address };
  return { by, nowMs: now(), eventId: newId() };
}
