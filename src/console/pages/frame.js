// @ts-check
/** The frame of the page: title, cards and navigation. */
import { byId, element, fill } from "../playground/dom.js";
import { call } from "./api.js";

/** @typedef {import("../playground/dom.js").Child} Child */

/**
 * Shows one page: its title and what is below it.
 * @param {string} title
 * @param {...Child} children
 */
export function show(title, ...children) {
  document.title = `${title} · Tessera`;
  fill(byId("main"), element("h1", {}, title), ...children);
}

/**
 * A box on the page.
 * @param {...Child} children
 */
export function card(...children) {
  return element("section", { class: "card" }, ...children);
}

/** @param {string} text */
export function intro(text) {
  return element("p", { class: "intro" }, text);
}

/** @param {import("./api.js").Person} person */
export function showPerson({ email }) {
  const out = element("button", { type: "button", class: "quiet" }, "Sign out");
  out.addEventListener("click", async () => {
    out.disabled = true;
    await call("/api/v1/auth:signOut", {}).catch(() => undefined);
    location.assign("/sign-in");
  });
  fill(
    byId("links"),
    element("span", { class: "who", title: email }, email),
    element("a", { href: "/account" }, "Account"),
    out,
  );
}
