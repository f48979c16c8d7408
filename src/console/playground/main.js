// @ts-check
/** The playground: loads the service and shows its endpoints. */
import { byId, element, fill } from "./dom.js";
import { endpointView, kindBadge } from "./endpoint.js";
import { showRecent } from "./recent.js";
import { errorView } from "./result.js";
import { loadService } from "./service.js";
import { deployment } from "./target.js";
import { askForToken } from "./token.js";

/** @typedef {import("./service.js").Endpoint} Endpoint */
/** @typedef {ReturnType<typeof endpointView>} View */

const main = byId("main");

async function start() {
  if (deployment !== null) {
    showInConsole();
  }
  byId("token-button").addEventListener("click", () => askForToken());
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault(); // The address names the endpoint and stays as it is.
    main.focus();
  });
  try {
    const service = await loadService();
    byId("service").textContent = service.name;
    showService(service);
  } catch (err) {
    byId("service").textContent = "Playground";
    const again = element(
      "button",
      { type: "button", onclick: () => location.reload() },
      "Try again",
    );
    fill(main, errorView(err), element("div", { class: "actions" }, again));
  }
}

/** The page is a part of the console: it looks like it, and says nothing twice. */
function showInConsole() {
  const { classList, dataset } = document.documentElement;
  classList.add("in-console");
  dataset.theme = localStorage.getItem("tessera.theme") ?? "system";
}

/** @param {import("./service.js").Service} service */
function showService({ name: serviceName, endpoints }) {
  /** @type {Map<string, View>} */
  const views = new Map();
  const links = endpoints.map(endpointLink);
  fill(byId("endpoints"), ...links.map((link) => element("li", {}, link)));
  offerFilter(endpoints, links);
  /** @type {View | undefined} */
  let current;

  const show = () => {
    const [name, taskId] = location.hash.replace(/^#\//, "").split("/").map(decodeHashPart);
    const endpoint = endpoints.find((one) => one.name === name) ?? endpoints[0];
    if (!endpoint) {
      fill(main, element("p", { class: "empty" }, "This service has no endpoints."));
      return;
    }
    const view = views.get(endpoint.name) ?? endpointView(endpoint);
    views.set(endpoint.name, view);
    if (view !== current) {
      current?.leave();
      current = view;
      fill(main, view.root);
      document.title = `${endpoint.name} · ${serviceName}`;
    }
    view.enter(endpoint.isTask && name === endpoint.name ? taskId : undefined);
    for (const [index, link] of links.entries()) {
      link.ariaCurrent = endpoints[index] === endpoint ? "page" : null;
    }
    showRecent();
  };
  addEventListener("hashchange", show);
  show();
}

/** Endpoints that can be overlooked without a filter. */
const MAX_UNFILTERED_ENDPOINTS = 12;

/**
 * Shows the field that leaves the links of endpoints with a text in their name.
 * @param {Endpoint[]} endpoints
 * @param {HTMLElement[]} links
 */
function offerFilter(endpoints, links) {
  const filter = byId("endpoint-filter");
  const input = /** @type {HTMLInputElement} */ (filter.querySelector("input"));
  filter.hidden = endpoints.length <= MAX_UNFILTERED_ENDPOINTS;
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase();
    for (const [index, link] of links.entries()) {
      const item = /** @type {HTMLElement} */ (link.parentElement);
      item.hidden = !endpoints[index]?.name.toLowerCase().includes(wanted);
    }
  });
}

/** @param {Endpoint} endpoint */
function endpointLink({ name, isTask, description }) {
  return element(
    "a",
    { href: `#/${encodeURIComponent(name)}`, title: description || undefined },
    element("span", { class: "endpoint-name" }, name),
    kindBadge(isTask),
  );
}

/** @param {string} part */
function decodeHashPart(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // Typed by hand: taken as it is.
  }
}

start();
