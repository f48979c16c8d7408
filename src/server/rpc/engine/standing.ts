/**
 * The standing of a stream's caller: who they are and what they may do. A stream lasts, so one that
 * shows what only some may see asks again, and ends when the answer has changed.
 */
import { isDeepStrictEqual } from "node:util";
import { type ContextValues, createContextKey } from "@connectrpc/connect";
import { principalOf } from "../../../auth/principal.ts";

/** Authenticates the caller of a call again; afterwards its context values say who it is now. */
type Reidentify = () => Promise<void> | undefined;

const reidentifyKey = createContextKey<Reidentify | undefined>(undefined, {
  description: "authenticates the caller of a stream again",
});

/** Stores how the caller of a stream is authenticated again. */
export function setReidentify(values: ContextValues, reidentify: Reidentify): void {
  values.set(reidentifyKey, reidentify);
}

/**
 * Whether the caller of a stream is who they were, with the same rights. Throws TOKEN_INVALID for
 * a credential that is not valid any more.
 */
export async function keepsStanding(values: ContextValues): Promise<boolean> {
  const before = principalOf(values);
  await values.get(reidentifyKey)?.();
  return isDeepStrictEqual(principalOf(values), before);
}
