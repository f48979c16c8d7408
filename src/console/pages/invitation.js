// @ts-check
/** The page that accepts an invitation. */

import { securedPath } from "./account-secured.js";
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
  const { organization, email, role, created_by: createdBy, sets_password: isNew } = invitation;
  const isSignedIn = person?.email === email && !isNew;
  show(
    `Join ${organization}`,
    intro(`${createdBy} invites you.`),
    card(
      facts({ "E-mail": email, Role: role }),
      form({
        fields: isSignedIn ? [] : personFields(isNew),
        submit: `Join ${organization}`,
        send: async (values) => {
          const joined = await call("/api/v1/auth:acceptInvitation", {
            invitation_code: code,
            ...values,
          });
          location.assign(joined.ended_credentials ? securedPath(joined.ended_credentials) : "/");
        },
      }),
    ),
  );
}

/**
 * @param {boolean} isNew whether the person chooses a password
 * @returns {import("./form.js").Field[]}
 */
function personFields(isNew) {
  return isNew
    ? [
        { name: "display_name", label: "Your name", optional: true, autocomplete: "name" },
        {
          name: "password",
          label: "Password",
          type: "password",
          hint: "A new one of at least 10 characters.",
          autocomplete: "new-password",
          minLength: 10,
        },
      ]
    : [
        {
          name: "password",
          label: "Password",
          type: "password",
          hint: "The password of your account here.",
          autocomplete: "current-password",
        },
      ];
}
