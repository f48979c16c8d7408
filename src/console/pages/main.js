// @ts-check
/** Starts the page of the reference. */
import { currentPerson } from "./api.js";
import { card, intro, show, showPerson } from "./frame.js";
import { referencePage } from "./reference.js";

async function start() {
  const person = await currentPerson();
  if (person) {
    showPerson(person);
  }
  await referencePage();
}

start().catch((err) => {
  show(
    "That did not work",
    intro(err instanceof Error ? err.message : String(err)),
    card(reload()),
  );
});

function reload() {
  const again = document.createElement("button");
  again.textContent = "Try again";
  again.addEventListener("click", () => location.reload());
  return again;
}
