/** Signs a person in, with their password or by the provider, and leads to where they wanted to go. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { auth } from "../../api/clients.ts";
import { safePath } from "../../api/safe-path.ts";
import { signInMethods } from "../../api/sign-in.ts";
import { SinglePage } from "../../shell/single-page.tsx";
import { FieldsForm, textOf } from "../../ui/fields-form.tsx";
import { Notice } from "../../ui/notice.tsx";

/** Why the answer of the provider was of no use, by the word that the server puts in the address. */
const REFUSED: ReadonlyMap<unknown, string> = new Map([
  [
    "no_account",
    "Nobody here has that e-mail address. Ask an admin of your organization for an invitation, then try again.",
  ],
  [
    "unverified",
    "The provider does not vouch for your e-mail address. Verify it there, or ask an admin of your organization for help.",
  ],
  ["denied", "The provider did not sign you in."],
  ["stale", "The provider did not ask you to prove that it is you, or does not say when it did."],
  ["other_person", "That was somebody else than who is signed in here."],
  ["expired", "That took too long, or began in another browser. Try again."],
]);
const FAILED =
  "The provider could not be asked, or its answer was not valid. The server's log says more.";

const route = getRouteApi("/sign-in");

export function SignIn() {
  const { data: methods } = useSuspenseQuery(signInMethods);
  const search = route.useSearch();
  const next = safePath(search.next, location.origin);
  if (methods.needs_setup) {
    return (
      <SinglePage
        title="Nobody has set this platform up yet"
        description="Open the link that the server printed when it started. It works once."
      />
    );
  }
  return (
    <SinglePage
      title="Sign in"
      description={
        next.startsWith("/cli/")
          ? "A program on your machine wants to log in as you."
          : `To ${location.host}`
      }
    >
      {search.refused !== undefined && (
        <Notice kind="error">{REFUSED.get(search.refused) ?? FAILED}</Notice>
      )}
      <section className="card">
        <FieldsForm
          isMain
          fields={[
            { name: "email", label: "E-mail address", type: "email", autoComplete: "username" },
            {
              name: "password",
              label: "Password",
              type: "password",
              autoComplete: "current-password",
            },
          ]}
          submit="Sign in"
          send={(values) =>
            auth.signIn({ email: textOf(values, "email"), password: textOf(values, "password") })
          }
          // Another document: nothing that was read for somebody else stays in memory.
          onDone={() => location.replace(next)}
        />
        {methods.oidc && (
          <>
            <p className="or">or</p>
            <a className="button" href={`/auth/oidc/start?${new URLSearchParams({ next })}`}>
              Sign in with {methods.oidc.name}
            </a>
          </>
        )}
      </section>
      <div className="secondary">
        <p>Forgot your password? The operator of this platform can set another.</p>
        <p>No account? An admin of your organization can invite you.</p>
      </div>
    </SinglePage>
  );
}
