// @ts-check
/** The reference of the platform's API: every operation of `/docs.json`, by service. */
import { byId, element } from "../playground/dom.js";
import { call } from "./api.js";
import { card, intro, show } from "./frame.js";
import { resolve, typeOf } from "./schemas.js";

/** @typedef {import("./schemas.js").Schema} Schema */
/** @typedef {import("./schemas.js").OpenApi} OpenApi */
/** @typedef {{path: string, method: string, operation: any}} Place */

/** Shows the document; each operation is closed until it is clicked or named in the address. */
export async function referencePage() {
  /** @type {OpenApi} */
  const document = await call("/docs.json");
  const places = placesOf(document);
  byId("main").classList.add("wide");
  show(
    "The platform's API",
    intro(`Version ${document.info.version}. Calls need a token: Authorization: Bearer …`),
    card(
      element(
        "p",
        {},
        "For programs, the same is at ",
        element("a", { href: "/docs.json" }, "/docs.json"),
        " (OpenAPI 3.1).",
      ),
    ),
    ...document.tags.map(({ name, description = "" }) =>
      card(
        element("h2", { id: name }, name),
        element("p", {}, description),
        ...places
          .filter(({ operation }) => operation.tags[0] === name)
          .map((place) => operationView(document, place)),
      ),
    ),
  );
  open();
  addEventListener("hashchange", open);
}

/** Opens the operation that the address names. */
function open() {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (named instanceof HTMLDetailsElement) {
    named.open = true;
  }
  named?.scrollIntoView();
}

/**
 * @param {OpenApi} document
 * @returns {Place[]}
 */
function placesOf({ paths }) {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
}

/**
 * @param {OpenApi} document
 * @param {Place} place
 */
function operationView(document, { path, method, operation }) {
  const { operationId, summary, description = "", parameters = [], requestBody } = operation;
  const body = requestBody?.content["application/json"]?.schema;
  return element(
    "details",
    { class: "operation", id: operationId },
    element(
      "summary",
      {},
      element("code", {}, `${method.toUpperCase()} ${path}`),
      element("span", {}, summary),
    ),
    ...description.split("\n\n").map((/** @type {string} */ text) => element("p", {}, text)),
    element("p", {}, `Who may call: ${operation["x-callers"]}`),
    fieldList(
      "Parameters",
      document,
      parameters.map((/** @type {any} */ one) => [`${one.name} (${one.in})`, one, one.schema]),
    ),
    body && fieldList("Body", document, fieldsOf(resolve(document, body))),
    answers(document, operation.responses),
  );
}

/**
 * @param {Schema} schema
 * @returns {[string, Schema, Schema][]}
 */
function fieldsOf({ properties = {}, required = [] }) {
  return Object.entries(properties).map(([name, schema]) => [
    name,
    { description: schema.description, required: required.includes(name) },
    schema,
  ]);
}

/**
 * Names with their types and what they mean.
 * @param {string} title
 * @param {OpenApi} document
 * @param {[string, Schema, Schema][]} fields
 */
function fieldList(title, document, fields) {
  return (
    fields.length > 0 &&
    element(
      "section",
      {},
      element("h3", {}, title),
      element(
        "dl",
        { class: "facts" },
        ...fields.flatMap(([name, { required, description }, schema]) => [
          element("dt", {}, element("code", {}, name), required ? " required" : ""),
          element("dd", {}, typeOf(document, schema), description ? `. ${description}` : ""),
        ]),
      ),
    )
  );
}

/**
 * Statuses with what they answer.
 * @param {OpenApi} document
 * @param {Record<string, any>} responses
 */
function answers(document, responses) {
  return element(
    "section",
    {},
    element("h3", {}, "Answers"),
    element(
      "dl",
      { class: "facts" },
      ...Object.entries(responses).flatMap(([status, response]) => {
        const { description, content = {} } = { ...resolve(document, response), ...response };
        const [schema] = Object.values(content).map((one) => one.schema);
        const type = Number(status) < 400 && schema ? ` ${typeOf(document, schema)}.` : "";
        return [element("dt", {}, status), element("dd", {}, `${description}${type}`)];
      }),
    ),
  );
}
