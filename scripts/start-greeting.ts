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
  readonly files: TokenFiles;
  /** The examples in Python; undefined where nobody has asked for them. */
  readonly python: readonly Outcome<ServedExample>[] | undefined;
}

export interface TokenFiles {
  /** Has the token that calls the digits. */
  readonly callerFile: string;
  /** Where a new token to deploy with belongs; absent if the one there is accepted. */
  readonly renewed?: string;
}

const TEXT = "Tides rise. Tides fall. The moon pulls the sea, and the sea follows the moon.";
const PICTURE = "-F image=@examples/digits/images/3-b.png";

export function greeting(greeted: StartGreeting): string {
  const { url, data, sandbox, email, password, files, python } = greeted;
  const { protocol, port } = new URL(url);
  const app = (name: string): string => `${protocol}//${name}.acme.apps.localhost:${port}`;
  const json = '-H "content-type: application/json"';
  const one = `${json} -d '${JSON.stringify({ text: TEXT, sentences: 1 })}'`;
  const many = `${json} -d '${JSON.stringify({ texts: [TEXT], sentences: 1 })}'`;
  const renew = `--endpoint ${url} --email ${email}`;
  const lines = [
    "",
    `Tessera runs on ${url} with the organization acme and two services.`,
    "",
    `  console    ${url}/`,
    `  docs       ${url}/docs/`,
    `  reference  ${url}/reference (of the API)`,
    `  sign in    as ${email}`,
    ...passwordLines(password, `--email ${email}${data === "./.tessera" ? "" : ` --data ${data}`}`),
    `  data       ${data}`,
    `  sandbox    ${sandbox === "kernel" ? "kernel" : "permission: deploy only code that you trust; npx tessera admin check says why"}`,
    "  log        without calls; TESSERA_ACCESS_LOG=on npm start has them",
    "",
    "summarizer, which anyone may call:",
    "",
    `  app=${app("summarizer")}`,
    `  curl $app/summarize ${one}`,
    `  curl ${url}/summarize -H "Tessera-Deployment: acme/summarizer" ${one}`,
    "",
    "Its other endpoint is a task: submit it, ask for its status, and get the result.",
    "",
    `  task_id=$(curl -s $app/summarize_batch/submit ${many} | sed 's/.*"task_id":"\\([^"]*\\)".*/\\1/')`,
    `  curl "$app/summarize_batch/status?task_id=$task_id"`,
    `  curl "$app/summarize_batch/get?task_id=$task_id&wait=30"`,
    "",
    "digits, which requires a token; this one is for nothing else, and ends after 90 days:",
    "",
    `  export TESSERA_TOKEN=$(cat ${files.callerFile})`,
    `  curl ${app("digits")}/classify -H "Authorization: Bearer $TESSERA_TOKEN" ${PICTURE}`,
    "",
    "Another, which asks for your password:",
    "",
    `  npx tessera token create digits --deployment digits ${renew} > ${files.callerFile}`,
    "",
    ...(files.renewed === undefined ? [] : renewal(files.renewed, renew)),
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

/** The password is shown by the start that makes it. */
function passwordLines(password: string | undefined, person: string): string[] {
  return password === undefined
    ? [
        "  password   as it was shown at the first start; to set another:",
        `             npx tessera admin reset-password ${person}`,
      ]
    : [`  password   ${password}  (shown this once)`];
}

/** What to do when the token that deploys the examples is not accepted any more. */
function renewal(file: string, person: string): string[] {
  return [
    `The examples are as an earlier start has deployed them: the token in ${file}`,
    "has expired, or was deleted. For the next start, make another:",
    "",
    `  npx tessera token create npm-start --developer-operations ${person} > ${file}`,
    "",
  ];
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
