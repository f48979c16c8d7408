// @ts-check
/** The page that sets up a platform. */
import { call } from "./api.js";
import { form } from "./form.js";
import { card, codeOfLink, intro, show } from "./frame.js";

export function setupPage() {
  const code = codeOfLink();
  /** @type {import("./form.js").Field[]} */
  const codeField = code
    ? []
    : [
        {
          name: "setup_code",
          label: "Setup code",
          hint: "What stands after #code= in the link that the server printed at its start.",
          autocomplete: "off",
        },
      ];
  show(
    "Set up this platform",
    intro("You become the first person here, and the admin of the first organization."),
    card(
      form({
        fields: [
          ...codeField,
          {
            name: "organization",
            label: "Organization",
            hint: "Lower case letters, digits and hyphens, such as acme. It never changes.",
            autocomplete: "organization",
            maxLength: 63,
          },
          { name: "email", label: "E-mail address", type: "email", autocomplete: "username" },
          { name: "display_name", label: "Your name", optional: true, autocomplete: "name" },
          {
            name: "password",
            label: "Password",
            type: "password",
            hint: "At least 10 characters.",
            autocomplete: "new-password",
            minLength: 10,
          },
        ],
        submit: "Set up",
        send: async (values) => {
          await call("/api/v1/auth:setUp", { setup_code: code, ...values });
          location.assign("/");
        },
      }),
    ),
  );
}
