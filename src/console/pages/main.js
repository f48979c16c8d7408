// @ts-check
/** The router of the pages. */
import { accountPage } from "./account.js";
import { accountSecuredPage } from "./account-secured.js";
import { currentPerson } from "./api.js";
import { authorizePage } from "./authorize.js";
import { devicePage } from "./device.js";
import { messageOf } from "./form.js";
import { card, intro, show, showPerson, signInFirst } from "./frame.js";
import { invitationPage } from "./invitation.js";
import { referencePage } from "./reference.js";
import { setupPage } from "./setup.js";
import { signInPage } from "./signin.js";

/** @typedef {import("./api.js").Person} Person */

/** @type {Record<string, (person: Person | undefined) => unknown>} Pages for anyone. */
const OPEN = {
  "/setup": setupPage,
  "/sign-in": signInPage,
  "/invitation": invitationPage,
  "/docs": referencePage,
};

/** @type {Record<string, (person: Person) => unknown>} Pages for who is signed in. */
const SIGNED_IN = {
  "/account": accountPage,
  "/account-secured": accountSecuredPage,
  "/cli/authorize": authorizePage,
  "/device": devicePage,
};

async function start() {
  const person = await currentPerson();
  if (person) {
    showPerson(person);
  }
  const open = OPEN[location.pathname];
  if (open) {
    await open(person);
  } else if (person) {
    await SIGNED_IN[location.pathname]?.(person);
  } else {
    signInFirst();
  }
}

start().catch((err) => {
  show("That did not work", intro(messageOf(err)), card(reload()));
});
// A link that differs only in its fragment loads no new page; the reference has links to its own parts.
addEventListener("hashchange", () => {
  if (location.pathname !== "/docs") {
    location.reload();
  }
});

function reload() {
  const again = document.createElement("button");
  again.textContent = "Try again";
  again.addEventListener("click", () => location.reload());
  return again;
}
