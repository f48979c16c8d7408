// @ts-check
/** The sign-in page. */
import { element } from "../playground/dom.js";
import { call } from "./api.js";
import { form } from "./form.js";
import { card, intro, nextPath, notice, show } from "./frame.js";

/** @type {Record<string, string>} Why the provider's answer was of no use. */
const REFUSED = {
  no_account:
    "Nobody here has that e-mail address. Ask an admin of your organization for an invitation, then try again.",
  unverified:
    "The provider does not vouch for your e-mail address. Verify it there, or ask an admin of your organization for help.",
  denied: "The provider did not sign you in.",
  stale: "The provider did not ask you to prove that it is you, or does not say when it did.",
  other_person: "That was somebody else than who is signed in here.",
  expired: "That took too long, or began in another browser. Try again.",
  failed:
    "The provider could not be asked, or its answer was not valid. The server's log says more.",
};

export async function signInPage() {
  const query = new URLSearchParams(location.search);
  const refused = query.get("refused");
  const { needs_setup: needsSetup, oidc } = await call("/auth/methods");
  if (needsSetup) {
    show(
      "Nobody has set this platform up yet",
      intro("Open the link that the server printed when it started. It works once."),
    );
    return;
  }
  const next = nextPath(query);
  show(
    "Sign in",
    refused && notice(REFUSED[refused] ?? REFUSED.failed ?? "", "failed"),
    next.startsWith("/cli/") && intro("A program on your machine wants to log in as you."),
    card(
      form({
        fields: [
          { name: "email", label: "E-mail address", type: "email", autocomplete: "username" },
          {
            name: "password",
            label: "Password",
            type: "password",
            autocomplete: "current-password",
          },
        ],
        submit: "Sign in",
        send: async (values) => {
          await call("/api/v1/auth:signIn", values);
          location.assign(next);
        },
      }),
      oidc && element("p", { class: "or" }, "or"),
      oidc &&
        element(
          "a",
          {
            class: "button wide-button",
            href: `/auth/oidc/start?${new URLSearchParams({ next })}`,
          },
          `Sign in with ${oidc.name}`,
        ),
    ),
    intro("No account? An admin of your organization can send you an invitation."),
  );
}
