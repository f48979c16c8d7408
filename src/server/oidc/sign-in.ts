/**
 * Which person a provider's identity is: the one it was linked to; else,
 * where the provider vouches for the e-mail address, the person of that
 * address, or the one whom an open invitation is for. Nobody else gets in:
 * that an address exists somewhere is no reason to.
 *
 * A provider that knows the browser answers without asking anybody. So a
 * person counts as having been there when the provider says that they were,
 * and if it does not say, long ago. What asks for a recent sign-in has them
 * prove it (`confirmBy`).
 */
import type { SessionPrincipal } from "../../auth/principal.ts";
import type { Accounts } from "../../storage/accounts/accounts.ts";
import type { Actor, Deed } from "../../storage/accounts/deed.ts";
import type { NewSession, User } from "../../storage/accounts/people.ts";
import type { Identity } from "./provider.ts";

export interface SignInOptions {
  readonly accounts: Accounts;
  readonly now: () => number;
  readonly newId: () => string;
}

/** Why nobody was signed in, or why a person has not proved to be there. */
export type Refusal = "no_account" | "unverified" | "stale" | "other_person";

/** By how much the clocks of provider and platform may differ. */
const SKEW_MS = 60_000;

/** Where a browser comes from. */
interface From {
  readonly address: string;
}

/**
 * Opens `session` for the person of an identity; answers why not, or undefined
 * when it is open. A refusal is recorded where it is about somebody here.
 */
export async function signInAs(
  identity: Identity,
  { session, address }: From & { readonly session: NewSession },
  options: SignInOptions,
): Promise<Refusal | undefined> {
  const { accounts, now, newId } = options;
  const { verifiedEmail: email, displayName, authenticatedAtMs = 0 } = identity;
  const opened = { ...session, authenticatedAtMs: Math.min(authenticatedAtMs, now()) };
  const user = await personOf(identity, { address }, options);
  if (user !== undefined) {
    const deed = deedOf(user, { address }, options);
    await accounts.openSession({ ...deed, userId: user.userId, session: opened });
    return undefined;
  }
  if (email === undefined) {
    await recordRefusal(
      { email: identity.claimedEmail, reason: "unverified" },
      { address },
      options,
    );
    return "unverified";
  }
  const invitation = await accounts.findInvitation({ email, nowMs: now() });
  if (invitation === undefined) {
    return "no_account";
  }
  const person = { email, userId: newId() };
  const { outcome } = await accounts.acceptInvitation({
    ...deedOf(person, { address }, options),
    invitationId: invitation.invitationId,
    userId: person.userId,
    newUser: { email, displayName },
    session: opened,
  });
  if (outcome !== "joined") {
    // Withdrawn, or used by the same person elsewhere, a moment ago: the next attempt finds how it is.
    return "no_account";
  }
  await link(identity, { person, address }, options);
  return undefined;
}

/**
 * Notes that the person of a session has proved to be there, if an identity is
 * theirs and the provider has asked them since `beganAtMs`; answers why not.
 * A refusal is recorded.
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
  const isOther = (await personOf(identity, { address }, options))?.userId !== userId;
  const isStale = (identity.authenticatedAtMs ?? 0) < beganAtMs - SKEW_MS;
  if (isOther || isStale) {
    const reason = isOther ? "other_person" : "stale";
    await recordRefusal({ email, reason }, { address }, options);
    return reason;
  }
  await options.accounts.confirmSession({ sessionId, nowMs: options.now() });
  return undefined;
}

/** The person whom an identity is linked to, now or since before. */
async function personOf(
  identity: Identity,
  { address }: From,
  options: SignInOptions,
): Promise<User | undefined> {
  const { accounts } = options;
  const { issuer, subject, verifiedEmail: email } = identity;
  const known = await accounts.findIdentity({ issuer, subject });
  if (known !== undefined || email === undefined) {
    return known;
  }
  const person = await accounts.findUser({ email });
  if (person !== undefined) {
    await link(identity, { person, address }, options);
  }
  return person;
}

function link(
  { issuer, subject }: Identity,
  { person, address }: From & { readonly person: Pick<User, "userId" | "email"> },
  options: SignInOptions,
): Promise<void> {
  const deed = deedOf(person, { address }, options);
  return options.accounts.linkIdentity({ ...deed, issuer, subject, userId: person.userId });
}

/** As with a wrong password: in every organization of the person, if there is one. */
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
