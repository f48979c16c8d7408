// @ts-check
/** The frame of all pages: title, cards, notices and navigation. */
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

/**
 * @param {string} text
 * @param {"" | "failed" | "done"} [kind]
 */
export function notice(text, kind = "") {
  return element("p", { class: `notice ${kind}`, role: "status" }, text);
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

/** Sends the person to the sign-in page, which returns here. */
export function signInFirst() {
  const here = `${location.pathname}${location.search}${location.hash}`;
  location.replace(`/sign-in?${new URLSearchParams({ next: here })}`);
}

/**
 * The path to open after the sign-in. Always on this server, whatever the query
 * says.
 * @param {URLSearchParams} query
 */
export function nextPath(query) {
  const next = query.get("next") ?? "/";
  const url = URL.canParse(next, location.origin) ? new URL(next, location.origin) : undefined;
  return url?.origin === location.origin && next.startsWith("/")
    ? `${url.pathname}${url.search}${url.hash}`
    : "/";
}

/** The code in a link's fragment, which browsers send to no server. */
export function codeOfLink() {
  return new URLSearchParams(location.hash.slice(1)).get("code") ?? "";
}
