// @ts-check
/** The account page: change the password, sign out. */
import { element } from "../playground/dom.js";
import { call } from "./api.js";
import { form } from "./form.js";
import { card, intro, notice, show } from "./frame.js";

/** @param {import("./api.js").Person} person */
export function accountPage({ email }) {
  show(
    "Your account",
    intro(email),
    card(
      element("h2", {}, "Change your password"),
      form({
        fields: [
          {
            name: "current_password",
            label: "Current password",
            type: "password",
            autocomplete: "current-password",
          },
          {
            name: "new_password",
            label: "New password",
            type: "password",
            hint: "At least 10 characters. Your sessions in other browsers end.",
            autocomplete: "new-password",
            minLength: 10,
          },
          {
            name: "revoke_tokens",
            label: "End my personal tokens, too",
            type: "checkbox",
            className: "switch",
            hint: "If somebody else knew your password. Programs that use them have to log in again.",
          },
        ],
        submit: "Change password",
        send: async (values) => {
          const changed = await call("/api/v1/auth:changePassword", values);
          show(
            "Your account",
            notice("Your password is changed.", "done"),
            intro(endedText(changed)),
            keptTokens(changed),
            home(),
          );
        },
      }),
    ),
  );
}

/** @param {{ended_sessions?: number, ended_tokens?: number}} changed */
function endedText({ ended_sessions: sessions = 0, ended_tokens: tokens = 0 }) {
  const ended = `Other sessions that ended: ${sessions}.`;
  return tokens > 0 ? `${ended} Personal tokens that ended: ${tokens}.` : ended;
}

/** @param {{kept_tokens?: {name: string, organization: string}[], kept_token_count?: number}} changed */
function keptTokens({ kept_tokens: tokens = [], kept_token_count: count = 0 }) {
  if (tokens.length === 0) {
    return undefined;
  }
  const more = count - tokens.length;
  return card(
    element("h2", {}, "Personal tokens that stay valid"),
    element(
      "ul",
      {},
      ...tokens.map(({ name, organization }) => element("li", {}, `${name} (${organization})`)),
      more > 0 && element("li", {}, `and ${more} more`),
    ),
    element("p", { class: "hint" }, "tessera token delete ends one of them."),
  );
}

function home() {
  return element("p", {}, element("a", { href: "/" }, "Back to the start"));
}
