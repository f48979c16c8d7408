/**
 * Which person a provider's identity is: the one it was linked to; else,
 * where the provider vouches for the e-mail address, the person of that
 * address, or the one whom an open invitation is for. Nobody else gets in:
 * that an address exists somewhere is no reason to.
 */
import type { Accounts, Actor, Deed } from "../storage/accounts/accounts.ts";
import type { NewSession } from "../storage/accounts/people.ts";
import type { Identity } from "./provider.ts";

export interface SignInOptions {
  readonly accounts: Accounts;
  readonly now: () => number;
  readonly newId: () => string;
}

/** Why nobody was signed in. */
export type Refusal = "no_account" | "unverified";

/** Opens `session` for the person of an identity; answers why not, or undefined when it is open. */
export async function signInAs(
  identity: Identity,
  { session, address }: { readonly session: NewSession; readonly address: string },
  { accounts, now, newId }: SignInOptions,
): Promise<Refusal | undefined> {
  const deed = (by: Pick<Actor, "name" | "id">): Deed => ({
    by: { ...by, address },
    nowMs: now(),
    eventId: newId(),
  });
  const { issuer, subject, verifiedEmail: email, displayName } = identity;
  const known = await accounts.findIdentity({ issuer, subject });
  if (known !== undefined) {
    const by = { name: known.email, id: known.userId };
    await accounts.openSession({ ...deed(by), userId: known.userId, session });
    return undefined;
  }
  if (email === undefined) {
    return "unverified";
  }
  const user = await accounts.findUser({ email });
  if (user !== undefined) {
    const by = { name: email, id: user.userId };
    await accounts.linkIdentity({ ...deed(by), issuer, subject, userId: user.userId });
    await accounts.openSession({ ...deed(by), userId: user.userId, session });
    return undefined;
  }
  const invitation = await accounts.findInvitation({ email, nowMs: now() });
  if (invitation === undefined) {
    return "no_account";
  }
  const userId = newId();
  const by = { name: email, id: userId };
  const { outcome } = await accounts.acceptInvitation({
    ...deed(by),
    invitationId: invitation.invitationId,
    userId,
    newUser: { email, displayName },
    session,
  });
  if (outcome !== "joined") {
    // Withdrawn, or used by the same person elsewhere, a moment ago: the next attempt finds how it is.
    return "no_account";
  }
  await accounts.linkIdentity({ ...deed(by), issuer, subject, userId });
  return undefined;
}
