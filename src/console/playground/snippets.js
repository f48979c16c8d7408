// @ts-check
/** Shell commands (curl, grpcurl) for the call in the form. */
import { pathBelow } from "./api.js";
import { copyButton, element, fill } from "./dom.js";
import { argumentsType } from "./exactjson.js";
import { needsToken, targetUrl } from "./target.js";
import { currentToken } from "./token.js";

/** @typedef {import("./service.js").Endpoint} Endpoint */
/** @typedef {import("./form.js").Arguments} Arguments */

/**
 * Commands that make the call of the form, to paste into a shell.
 * @param {Endpoint} endpoint
 * @param {() => Arguments} peek
 */
export function snippetsPanel(endpoint, peek) {
  const code = element("code");
  let kind = "curl";
  const update = () => {
    const write = kind === "curl" ? curlCommand : grpcurlCommand;
    code.textContent = write(endpoint, peek());
  };
  const tabs = element("div", { class: "segments", role: "group", "aria-label": "Tool" });
  const show = () => {
    const buttons = ["curl", "grpcurl"].map((name) =>
      element(
        "button",
        {
          type: "button",
          "aria-pressed": String(name === kind),
          onclick: () => {
            kind = name;
            show();
            /** @type {HTMLElement | null} */ (tabs.querySelector("[aria-pressed=true]"))?.focus();
          },
        },
        name,
      ),
    );
    fill(tabs, ...buttons);
    update();
  };
  show();
  const head = element(
    "div",
    { class: "card-head" },
    tabs,
    copyButton(() => code.textContent ?? "", "command"),
  );
  const root = element(
    "section",
    { class: "card snippets", "aria-label": "Commands" },
    head,
    element("pre", { tabindex: "0" }, code),
  );
  return { root, update };
}

/**
 * @param {Endpoint} endpoint
 * @param {Arguments} given
 */
export function curlCommand(endpoint, given) {
  const args = withExamples(endpoint, given);
  const { origin } = targetUrl();
  const call = origin + pathBelow(endpoint.route, endpoint.isTask ? "submit" : undefined);
  const lines = [
    // Without a buffer, so that pieces are shown as they come.
    `curl ${endpoint.streams ? "-N " : ""}${quote(call)}`,
    ...tokenHeader("authorization"),
    ...curlBody(endpoint, args),
  ];
  const isText = /^(text\/|application\/(json|x-ndjson))/.test(endpoint.resultType);
  const save = isText ? "" : " --output result";
  if (!endpoint.isTask) {
    return lines.join(" \\\n  ") + save;
  }
  const get = [
    `curl "${origin}${pathBelow(endpoint.route, "get")}?task_id=$TASK_ID&wait=30"`,
    ...tokenHeader("authorization"),
  ];
  return `${lines.join(" \\\n  ")}\n\n# with the task_id of the answer\n${get.join(" \\\n  ")}${save}`;
}

/**
 * @param {Endpoint} endpoint
 * @param {Arguments} args
 */
export function grpcurlCommand(endpoint, args) {
  const { values, files } = withExamples(endpoint, args);
  const call = endpoint.streams ? "StreamEndpoint" : "CallEndpoint";
  const method = endpoint.isTask ? "TaskService/SubmitTask" : `EndpointService/${call}`;
  const { protocol, hostname, port: given } = targetUrl();
  const secure = protocol === "https:";
  const port = given || (secure ? "443" : "80");
  /** @type {Record<string, unknown>} */
  const named = { ...values };
  /** @type {[string, string][]} */
  const embedded = [];
  for (const [name, list] of Object.entries(withPlaceholders(endpoint, files))) {
    const marks = list.map((file) => {
      const mark = `@file-${embedded.length}@`;
      embedded.push([
        mark,
        `data:${file.type};base64,'"$(base64 < ${quote(file.name)} | tr -d '\\n')"'`,
      ]);
      return mark;
    });
    named[name] = endpoint.arguments[name]?.file?.array ? marks : marks[0];
  }
  let body = quote(JSON.stringify({ endpoint: endpoint.name, arguments: named }));
  for (const [mark, data] of embedded) {
    body = body.replace(mark, () => data);
  }
  const options = [
    ...(secure ? [] : ["-plaintext"]),
    `-d ${body}`,
    ...tokenHeader("authorization"),
  ];
  return ["grpcurl", ...options, `${hostname}:${port} tessera.v1.${method}`].join(" \\\n  ");
}

/**
 * @param {Endpoint} endpoint
 * @param {Arguments} args
 */
function curlBody(endpoint, { values, files }) {
  if (!Object.values(endpoint.arguments).some((argument) => argument.file)) {
    return [`-H 'content-type: ${argumentsType(values)}'`, `-d ${quote(JSON.stringify(values))}`];
  }
  const parts = Object.entries(withPlaceholders(endpoint, files)).flatMap(([name, list]) =>
    list.map((file) => `-F ${quote(`${name}=@${formFileName(file.name)}`)}`),
  );
  const others = Object.entries(values).map(([name, value]) => {
    return `--form-string ${quote(`${name}=${JSON.stringify(value)}`)}`;
  });
  return [...parts, ...others];
}

/**
 * The arguments with examples for required ones that are not filled in: the command is one that
 * can be run.
 * @param {Endpoint} endpoint
 * @param {Arguments} args
 * @returns {Arguments}
 */
function withExamples(endpoint, { values, files }) {
  const missing = Object.entries(endpoint.arguments)
    .filter(([name, { required, file }]) => required && !file && values[name] === undefined)
    .filter(([name]) => endpoint.example[name] !== undefined)
    .map(([name]) => [name, endpoint.example[name]]);
  return { values: { ...Object.fromEntries(missing), ...values }, files };
}

/**
 * The chosen files, or a stand-in for a required one that is still missing.
 * @param {Endpoint} endpoint
 * @param {Record<string, File[]>} files
 */
function withPlaceholders(endpoint, files) {
  /** @type {Record<string, {name: string, type: string}[]>} */
  const named = {};
  for (const [name, { file, required }] of Object.entries(endpoint.arguments)) {
    const chosen = files[name] ?? (file && required ? [{ name: `${name}.file`, type: "" }] : []);
    if (file && chosen.length > 0) {
      named[name] = chosen.map((one) => ({
        name: one.name,
        type: one.type || "application/octet-stream",
      }));
    }
  }
  return named;
}

/**
 * A file name as curl's `-F` reads it, where `;` and `,` mean something else.
 * @param {string} name
 */
function formFileName(name) {
  return /[;,"]/.test(name) ? JSON.stringify(name) : name;
}

/** @param {string} name */
function tokenHeader(name) {
  return currentToken() || needsToken() ? [`-H "${name}: Bearer $TESSERA_TOKEN"`] : [];
}

/**
 * Quotes a text for a POSIX shell, if it needs that.
 * @param {string} text
 */
function quote(text) {
  if (/^[\w@%+=:,./-]+$/.test(text)) {
    return text;
  }
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
