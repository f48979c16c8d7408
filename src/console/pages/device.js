// @ts-check
/** The page that approves a command-line login by device code. */
import { call } from "./api.js";
import { allowOrDeny, facts, form, organizationChoice } from "./form.js";
import { card, codeOfLink, intro, notice, show } from "./frame.js";

/** @typedef {import("./api.js").Person} Person */

/** @param {Person} person */
export function devicePage(person) {
  const query = new URLSearchParams(location.search);
  show(
    "Log in another machine",
    intro("Type the code that tessera cloud login shows there."),
    card(
      form({
        fields: [
          {
            name: "user_code",
            label: "Code",
            value: query.get("user_code") ?? codeOfLink(),
            autocomplete: "off",
            className: "code-input",
            maxLength: 32,
          },
        ],
        submit: "Continue",
        send: async (values) => ask(person, await call("/api/v1/login:getDevice", values)),
      }),
    ),
  );
}

/**
 * @param {Person} person
 * @param {{user_code: string, host_name?: string, address?: string, created_at: string}} login
 */
function ask({ email, organizations = [] }, login) {
  if (organizations.length === 0) {
    show("Log in another machine", notice("You belong to no organization yet.", "failed"));
    return;
  }
  const organization = organizationChoice(organizations);
  /** @param {boolean} approve */
  const answer = (approve) =>
    call("/api/v1/login:answerDevice", {
      user_code: login.user_code,
      approve,
      organization: organization.chosen(),
    });
  show(
    "Log in another machine",
    intro(
      "A program asks for a token of yours, valid for 90 days. Allow it only if it is yours and shows this code.",
    ),
    card(
      facts({
        Code: login.user_code,
        Machine: login.host_name || "unknown",
        Address: login.address || "unknown",
        "Asked at": new Date(login.created_at).toLocaleTimeString(),
        "Signed in as": email,
        ...organization.facts,
      }),
      organization.choice,
      ...allowOrDeny({
        allow: async () => {
          await answer(true);
          show("Done", notice("The other machine is logged in. You can close this page.", "done"));
        },
        deny: async () => {
          await answer(false);
          show("Denied", notice("The program gets no token. You can close this page."));
        },
      }),
    ),
  );
}
