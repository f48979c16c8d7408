// @ts-check
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
        ],
        submit: "Change password",
        send: async (values) => {
          await call("/api/v1/auth:changePassword", values);
          show("Your account", notice("Your password is changed.", "done"), home());
        },
      }),
    ),
  );
}

function home() {
  return element("p", {}, element("a", { href: "/" }, "Back to the start"));
}
