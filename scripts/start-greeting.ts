/** The final output of `npm start`. */
import { type Outcome, PYTHON_EXAMPLES, type ServedExample } from "./start-python.ts";

export interface StartGreeting {
  /** The platform's address, such as `http://localhost:3000`. */
  readonly url: string;
  readonly data: string;
  /** The level of the sandbox. */
  readonly sandbox: string;
  readonly email: string;
  /** Undefined if an earlier start has shown it. */
  readonly password: string | undefined;
  readonly token: string;
  /** The examples in Python; undefined where nobody has asked for them. */
  readonly python: readonly Outcome<ServedExample>[] | undefined;
}

const JSON_HEADER = '-H "content-type: application/json"';
const ARTICLE =
  "A lighthouse marks a coast for ships. Its lamp is small, but its lens gathers the light into a beam. Most keepers have gone since the lamps were automated.";
const PICTURE = "-F image=@examples/digits/images/3-b.png";
const HEADER = '-H "Authorization: Bearer $TESSERA_TOKEN"';

export function greeting(greeted: StartGreeting): string {
  const { url, data, sandbox, email, password, token, python } = greeted;
  const { protocol, port } = new URL(url);
  const app = (name: string): string => `${protocol}//${name}.acme.apps.localhost:${port}`;
  const one = `${JSON_HEADER} -d '${JSON.stringify({ text: ARTICLE, sentences: 1 })}'`;
  const many = `${JSON_HEADER} -d '${JSON.stringify({ texts: [ARTICLE], sentences: 1 })}'`;
  const batch = `${app("summarizer")}/summarize_batch`;
  const lines = [
    "",
    `Tessera runs on ${url} with the organization acme and two services.`,
    "",
    `  sign in   ${url} as ${email}`,
    `  password  ${password === undefined ? "as it was shown at the first start; npx tessera admin reset-password sets another" : `${password}  (shown this once)`}`,
    `  data      ${data}`,
    `  sandbox   ${sandbox === "kernel" ? "kernel" : "permission: deploy only code that you trust; npx tessera admin check says why"}`,
    "",
    `summarizer, which anyone may call: ${app("summarizer")}`,
    "",
    `  curl ${app("summarizer")}/summarize ${one}`,
    `  curl ${url}/summarize -H "Tessera-Deployment: acme/summarizer" ${one}`,
    "",
    "Its other endpoint is a task: submit it, ask for its status, and get the result.",
    "",
    `  task_id=$(curl -s ${batch}/submit ${many} | sed 's/.*"task_id":"\\([^"]*\\)".*/\\1/')`,
    `  curl "${batch}/status?task_id=$task_id"`,
    `  curl "${batch}/get?task_id=$task_id&wait=30"`,
    "",
    `digits, which requires a token: ${app("digits")}`,
    "",
    `  export TESSERA_TOKEN=${token}`,
    `  curl ${app("digits")}/classify ${HEADER} ${PICTURE}`,
    `  curl ${url}/classify -H "Tessera-Deployment: acme/digits" ${HEADER} ${PICTURE}`,
    "",
    ...(python === undefined ? pythonOffer() : python.flatMap(pythonLines)),
    "Deploy a service of your own, in another terminal:",
    "",
    `  npx tessera cloud login --endpoint ${url}`,
    "  npx tessera deploy service.ts",
    "",
    "Ctrl-C stops.",
    "",
  ];
  return `${lines.join("\n")}\n`;
}

/** What the examples in Python do and need. */
function pythonOffer(): string[] {
  const needs = PYTHON_EXAMPLES.map(({ name, does, versions, packages, megabytes }) => {
    const { oldest, newest } = versions;
    return `  ${name.padEnd(9)} ${does}: Python 3.${oldest} to 3.${newest}, ${packages} packages, ${megabytes} MB`;
  });
  return ["Two more in Python, with real models: npm start -- --examples all", "", ...needs, ""];
}

function pythonLines(outcome: Outcome<ServedExample>): string[] {
  const { name, does, call } = outcome.example;
  if ("leftOut" in outcome) {
    return [`${name}, which ${does}, is left out: ${outcome.leftOut}`, ""];
  }
  return [`${name}, which ${does}: ${outcome.url}`, "", `  curl ${outcome.url}${call}`, ""];
}
