// @ts-check
/** The page that accepts an invitation. */
import { CallError, call } from "./api.js";
import { facts, form } from "./form.js";
import { card, codeOfLink, intro, show } from "./frame.js";

/** @param {import("./api.js").Person | undefined} person */
export async function invitationPage(person) {
  const code = codeOfLink();
  let invitation;
  try {
    invitation = await call("/api/v1/auth:getInvitation", { invitation_code: code });
  } catch (err) {
    if (err instanceof CallError && err.reason === "INVITATION_NOT_FOUND") {
      show(
        "This invitation cannot be used",
        intro(
          "It was used already, withdrawn, or is older than 7 days; or the link was not copied as a whole. Ask whoever sent it for another one.",
        ),
      );
      return;
    }
    throw err;
  }
  const { organization, email, role, created_by: createdBy } = invitation;
  const isSignedIn = person?.email === email;
  show(
    `Join ${organization}`,
    intro(`${createdBy} invites you.`),
    card(
      facts({ "E-mail": email, Role: role }),
      form({
        fields: isSignedIn ? [] : newPersonFields(),
        submit: `Join ${organization}`,
        send: async (values) => {
          await call("/api/v1/auth:acceptInvitation", { invitation_code: code, ...values });
          location.assign("/");
        },
      }),
    ),
  );
}

/** @returns {import("./form.js").Field[]} */
function newPersonFields() {
  return [
    { name: "display_name", label: "Your name", optional: true, autocomplete: "name" },
    {
      name: "password",
      label: "Password",
      type: "password",
      hint: "A new one of at least 10 characters; or, if you have an account here, its password.",
      autocomplete: "new-password",
      minLength: 10,
    },
  ];
}
