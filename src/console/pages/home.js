// @ts-check
/** The home page: the person's organizations, and the first steps on the command line. */
import { byId, copyButton, element } from "../playground/dom.js";
import { card, intro, show } from "./frame.js";

/** @param {import("./api.js").Person} person */
export function homePage({ email, organizations = [] }) {
  const { origin } = location;
  byId("main").classList.add("wide");
  show(
    "You are signed in",
    intro(email),
    card(
      element("h2", {}, "Your organizations"),
      organizations.length > 0
        ? element("ul", { class: "memberships" }, ...organizations.map(membership))
        : element("p", {}, "None. An admin of one can send you an invitation."),
    ),
    card(
      element("h2", {}, "What to do next"),
      element(
        "ol",
        { class: "steps" },
        step("Log in on the command line", `npx tessera-platform cloud login --endpoint ${origin}`),
        step(
          "Make a token for another machine",
          "npx tessera-platform token create build-server --developer-operations",
        ),
        step("Invite a colleague", "npx tessera-platform member invite colleague@example.com"),
      ),
    ),
  );
}

/** @param {import("./api.js").Organization} organization */
function membership({ name, display_name: displayName, role = "member" }) {
  return element(
    "li",
    {},
    element("span", { class: "name" }, displayName ? `${displayName} (${name})` : name),
    element("span", { class: role === "admin" ? "badge task" : "badge" }, role),
  );
}

/**
 * @param {string} what
 * @param {string} command
 */
function step(what, command) {
  return element(
    "li",
    {},
    what,
    element(
      "div",
      { class: "command" },
      element("code", {}, ...words(command)),
      element(
        "div",
        {},
        copyButton(() => command, "command"),
      ),
    ),
  );
}

/**
 * Lines break between words only, not within an option.
 * @param {string} command
 */
function words(command) {
  return command
    .split(" ")
    .flatMap((word, index) => [index > 0 && " ", element("span", { class: "word" }, word)]);
}
