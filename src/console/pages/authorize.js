// @ts-check
/** The page that approves a command-line login by browser redirect. */
import { call } from "./api.js";
import { allowOrDeny, facts, organizationChoice } from "./form.js";
import { card, intro, notice, show } from "./frame.js";

/** The loopback address of a waiting program; the server checks it again. */
const LOOPBACK = /^http:\/\/(?:127\.0\.0\.1|\[::1\]):\d{1,5}(?:\/[^#\s]*)?$/;

/** @param {import("./api.js").Person} person */
export function authorizePage({ email, organizations = [] }) {
  const query = new URLSearchParams(location.search);
  /** @param {string} name */
  const given = (name) => query.get(name) ?? "";
  const redirect = given("redirect_uri");
  if (!LOOPBACK.test(redirect) || given("state") === "") {
    show(
      "This link cannot be used",
      intro("It is not one that tessera cloud login opens. Start the login again on your machine."),
    );
    return;
  }
  if (organizations.length === 0) {
    show("Log in on the command line", notice("You belong to no organization yet.", "failed"));
    return;
  }
  const organization = organizationChoice(organizations);
  show(
    "Log in on the command line",
    intro(
      "A program asks for a token of yours, valid for 90 days. Allow it only if you have just started it.",
    ),
    card(
      facts({
        Machine: given("host_name") || "unknown",
        "Signed in as": email,
        ...organization.facts,
      }),
      organization.choice,
      ...allowOrDeny({
        allow: async () => {
          const { redirect_url: next } = await call("/api/v1/login:authorize", {
            organization: organization.chosen(),
            redirect_uri: redirect,
            code_challenge: given("code_challenge"),
            code_challenge_method: given("code_challenge_method"),
            state: given("state"),
            host_name: given("host_name"),
          });
          location.assign(next);
        },
        deny: async () => {
          const back = new URL(redirect);
          back.searchParams.set("error", "access_denied");
          back.searchParams.set("state", given("state"));
          location.assign(back);
        },
      }),
    ),
  );
}
