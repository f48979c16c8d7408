// @ts-check
/** The page that tells what ended when a person proved the address of an account. */
import { element } from "../playground/dom.js";
import { card, intro, nextPath, notice, show } from "./frame.js";

/** @type {[string, string][]} What may have ended, by its name in the query. */
const COUNTS = [
  ["sessions", "Sessions"],
  ["personal_tokens", "Personal tokens"],
  ["organization_tokens", "Tokens made for an organization"],
  ["invitations", "Open invitations"],
];

/**
 * The address of this page.
 * @param {object} ended as the API says it
 */
export function securedPath(ended) {
  const texts = Object.entries(ended).map(([name, value]) => [name, String(value)]);
  return `/account-secured?${new URLSearchParams(texts)}`;
}

/** @param {import("./api.js").Person} person */
export function accountSecuredPage({ email, organizations = [] }) {
  const query = new URLSearchParams(location.search);
  const ended = COUNTS.map(([name, label]) => {
    const count = Number(query.get(name) ?? 0);
    return element("li", {}, `${label}: ${Number.isSafeInteger(count) && count > 0 ? count : 0}`);
  });
  show(
    "Your account is yours alone now",
    notice("Somebody else may have used this account before you."),
    intro(
      `An account for ${email} existed before anybody had proved that this address is theirs. You have just proved it, so everything by which others could have used the account has ended.`,
    ),
    card(
      element("h2", {}, "What has ended"),
      element(
        "ul",
        {},
        query.get("password") === "true" && element("li", {}, "The password"),
        ...ended,
      ),
      element(
        "p",
        { class: "hint" },
        "If it was you who used it, make new tokens where you need them.",
      ),
    ),
    card(
      element("h2", {}, "What you belong to"),
      element(
        "ul",
        {},
        ...organizations.map(({ name, role }) => element("li", {}, `${name} (${role})`)),
      ),
      element(
        "p",
        { class: "hint" },
        "Leave those that you do not know (tessera member leave). What the account did is in the audit log of each: tell its admins if it was not you.",
      ),
    ),
    element("p", {}, element("a", { href: nextPath(query) }, "Continue")),
  );
}
