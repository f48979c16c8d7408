// @ts-check
/** Reads the deployment's description. */
import { sendForJson } from "./api.js";
import { plainSchema } from "./plain.js";
import { loadTarget } from "./target.js";

/** @typedef {Record<string, any>} Schema */
/** @typedef {{schema: Schema, required: boolean, file?: {array: boolean, accept: string}}} Argument */
/**
 * @typedef {object} Endpoint
 * @property {string} name
 * @property {string} route its path, as URLs have it
 * @property {boolean} isTask
 * @property {string} description
 * @property {Record<string, Argument>} arguments by name
 * @property {Record<string, unknown>} example arguments without files
 * @property {string} resultType content type of the result
 * @property {boolean} streams the result comes in pieces
 * @property {(schema: Schema) => Schema} plain follows references
 */
/** @typedef {{name: string, description: string, endpoints: Endpoint[]}} Service */

/**
 * Loads the deployment's description.
 * @returns {Promise<Service>}
 */
export async function loadService() {
  const schema = await sendForJson("/schema.json");
  const docs = await sendForJson("/docs.json");
  await loadTarget(sendForJson);
  return {
    name: schema.name,
    description: docs.info?.description ?? "",
    endpoints: schema.routes.map((/** @type {any} */ route) => readEndpoint(route, docs)),
  };
}

/**
 * @param {any} route
 * @param {any} docs
 * @returns {Endpoint}
 */
function readEndpoint(route, docs) {
  const { post } = docs.paths[route.route];
  const content = post.requestBody?.content ?? {};
  const form = content["multipart/form-data"];
  const json = content["application/json"];
  /** @param {Schema} schema */
  const plain = (schema) => plainSchema(docs, schema);
  const { properties = {}, required = [] } = plain((form ?? json)?.schema ?? {});
  /** @type {Record<string, Argument>} */
  const args = {};
  for (const [name, property] of Object.entries(properties)) {
    const schema = plain(/** @type {Schema} */ (property));
    const array = schema.type === "array" && isFile(plain(schema.items ?? {}));
    const accept = form?.encoding?.[name]?.contentType ?? "*/*";
    args[name] = { schema, required: required.includes(name) };
    if (form && (array || isFile(schema))) {
      args[name].file = { array, accept };
    }
  }
  const example = Object.entries(json?.example ?? {}).filter(([name]) => !args[name]?.file);
  return {
    name: route.name,
    route: route.route,
    isTask: route.is_task,
    description: route.description ?? "",
    arguments: args,
    example: Object.fromEntries(example),
    resultType: Object.keys(post.responses?.[200]?.content ?? {})[0] ?? "application/json",
    streams: route.output?.is_stream === true && !route.is_task,
    plain,
  };
}

/** @param {Schema} schema */
function isFile(schema) {
  return schema.type === "string" && schema.format === "binary";
}
