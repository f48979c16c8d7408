// @ts-check
/** The arguments form of an endpoint. */
import { element } from "./dom.js";
import { argumentField } from "./fields.js";
import { modeBar, rawEditor } from "./rawjson.js";

/** @typedef {import("./service.js").Endpoint} Endpoint */
/** @typedef {{showProblem: (text: string) => void, focus: () => void}} Place */
/** @typedef {{values: Record<string, any>, files: Record<string, File[]>}} Arguments */
/**
 * @typedef {object} ArgumentsForm
 * @property {HTMLElement} root
 * @property {() => Arguments | undefined} read undefined after showing what is wrong
 * @property {() => Arguments} peek what can be read, without complaint
 * @property {(violations: {field: string, description: string}[]) => string[]} showViolations gives those that have no field
 */

/**
 * The arguments of an endpoint as fields, or as JSON with pickers for files.
 * @param {Endpoint} endpoint
 * @returns {ArgumentsForm}
 */
export function argumentsForm(endpoint) {
  const fields = new Map(
    Object.entries(endpoint.arguments).map(([name, argument]) => [
      name,
      argumentField(endpoint, name, argument),
    ]),
  );
  const raw = rawEditor(endpoint.name);
  const root = element("div", { class: "fields" });
  let isRaw = false;

  const collectNow = () => collect(fields, isRaw ? raw : undefined);
  const clear = () => {
    for (const place of [raw, ...fields.values()]) {
      place.showProblem("");
    }
  };
  /** @param {boolean} next */
  const show = (next) => {
    clear();
    const { values, problems } = collectNow();
    if (isRaw && problems.some(({ place }) => place === raw)) {
      complain(problems);
      return false;
    }
    if (next !== isRaw) {
      next ? raw.write(values) : writeAll(fields, values);
    }
    isRaw = next;
    raw.root.hidden = !isRaw;
    for (const field of fields.values()) {
      field.root.hidden = isRaw && !field.isFile;
    }
    return true;
  };
  const bar = modeBar(show, () => {
    clear();
    writeAll(fields, endpoint.example);
    raw.write(endpoint.example);
  });
  const head = fields.size > 0 ? bar : element("p", { class: "hint" }, "Takes no arguments.");
  root.append(head, raw.root, ...[...fields.values()].map((field) => field.root));

  return {
    root,
    peek: collectNow,
    read: () => {
      clear();
      const { problems, ...read } = collectNow();
      complain(problems);
      return problems.length > 0 ? undefined : read;
    },
    showViolations: (violations) =>
      violations.flatMap(({ field, description }) => {
        const [name = "", ...rest] = field.split(".");
        const place = fields.get(name);
        if (!place || (isRaw && !place.isFile)) {
          return [field ? `${field}: ${description}` : description];
        }
        const text = rest.length > 0 ? `${rest.join(".")}: ${description}` : description;
        place.showProblem(text);
        return [];
      }),
  };
}

/**
 * @param {Map<string, import("./fields.js").Field>} fields
 * @param {ReturnType<typeof rawEditor> | undefined} raw the editor, if it counts and not the fields
 */
function collect(fields, raw) {
  /** @type {Arguments & {problems: {place: Place, text: string}[]}} */
  const read = { values: {}, files: {}, problems: [] };
  /**
   * @param {Place} place
   * @param {() => void} work
   */
  const attempt = (place, work) => {
    try {
      work();
    } catch (err) {
      read.problems.push({ place, text: err instanceof Error ? err.message : String(err) });
    }
  };
  if (raw) {
    attempt(raw, () => Object.assign(read.values, raw.read()));
  }
  for (const [name, field] of fields) {
    if (raw && !field.isFile) {
      continue;
    }
    attempt(field, () => {
      const value = field.read();
      if (value !== undefined) {
        Object.assign(field.isFile ? read.files : read.values, { [name]: value });
      }
    });
  }
  return read;
}

/** @param {{place: Place, text: string}[]} problems */
function complain(problems) {
  for (const { place, text } of problems) {
    place.showProblem(text);
  }
  problems[0]?.place.focus();
}

/**
 * @param {Map<string, import("./fields.js").Field>} fields
 * @param {Record<string, unknown>} values
 */
function writeAll(fields, values) {
  for (const [name, field] of fields) {
    if (!field.isFile) {
      field.write(values[name]);
    }
  }
}
