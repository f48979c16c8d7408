/** What pages for anyone have to know: how people sign in here, and who is signed in, if anybody. */
import { queryOptions } from "@tanstack/react-query";
import { auth } from "./clients.ts";
import { isSignedOut } from "./errors.ts";
import { getJson } from "./get-json.ts";

/** The answer of `/auth/methods`. */
interface SignInMethods {
  /** True until somebody has opened the link of the setup. */
  readonly needs_setup: boolean;
  /** The provider of OpenID Connect; absent without one. */
  readonly oidc?: { readonly name: string } | null;
}

export const signInMethods = queryOptions({
  queryKey: ["sign-in-methods"],
  queryFn: ({ signal }) => getJson("/auth/methods", signal) as Promise<SignInMethods>,
});

/** The signed-in person; null for anyone else. */
export const visitor = queryOptions({
  queryKey: ["visitor"],
  queryFn: async ({ signal }) => {
    try {
      return await auth.getCurrentPrincipal({}, { signal });
    } catch (err) {
      if (isSignedOut(err)) {
        return null;
      }
      throw err;
    }
  },
});
