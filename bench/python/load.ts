/**
 * The load on services in Python, a process of its own: `node bench/python/load.ts <json>` prints
 * one line of JSON. A task is a submit, and asking for its end: with one request that waits, or,
 * where there is none, by its status every few milliseconds, as clients do it.
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type Answer, Connection } from "../connection.ts";

export interface PythonPlan {
  readonly port: number;
  readonly connections: number;
  readonly seconds: number;
  readonly endpoint: string;
  /** Undefined: a call of an api. */
  readonly task?: "waits" | "polls";
  /** What is sent. Default: a name. */
  readonly body?: PythonBody;
}

/** Numbers as JSON, or a file in a form. */
export type PythonBody =
  | { readonly numbers: number }
  | { readonly file: string; readonly argument: string; readonly contentType: string };

const BOUNDARY = "------------------------bench";

/** Between two looks at a task's status. */
const POLL_INTERVAL_MS = 5;

const plan = JSON.parse(process.argv[2] ?? "{}") as PythonPlan;

function bodyOf(given: PythonBody | undefined): { readonly type: string; readonly text: string } {
  if (given === undefined) {
    return { type: "application/json", text: JSON.stringify({ name: "Ada" }) };
  }
  if ("numbers" in given) {
    const values = Array.from({ length: given.numbers }, (_, index) => Math.sin(index));
    return { type: "application/json", text: JSON.stringify({ values }) };
  }
  const { file, argument, contentType } = given;
  const text =
    `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${argument}"; filename="sent"\r\n` +
    `content-type: ${contentType}\r\n\r\n${readFileSync(file, "latin1")}\r\n--${BOUNDARY}--\r\n`;
  return { type: `multipart/form-data; boundary=${BOUNDARY}`, text };
}

const BODY = bodyOf(plan.body);

const request = (method: string, path: string): string => {
  const body = method === "POST" ? BODY.text : "";
  const type = body === "" ? "" : `content-type: ${BODY.type}\r\n`;
  return `${method} /${path} HTTP/1.1\r\nhost: localhost\r\n${type}content-length: ${body.length}\r\n\r\n${body}`;
};

function check({ status, body }: Answer): Answer {
  if (status !== 200 && status !== 202) {
    throw new Error(`${status} ${body.slice(0, 300)}`);
  }
  return { status, body };
}

async function one(connection: Connection): Promise<void> {
  const { endpoint, task } = plan;
  if (task === undefined) {
    check(await connection.request(request("POST", endpoint)));
    return;
  }
  const submitted = check(await connection.request(request("POST", `${endpoint}/submit`)));
  const { task_id: id } = JSON.parse(submitted.body) as { task_id: string };
  while (task === "polls") {
    const { body } = check(
      await connection.request(request("GET", `${endpoint}/status?task_id=${id}`)),
    );
    if (!body.includes('"in_progress"')) {
      break;
    }
    await sleep(POLL_INTERVAL_MS);
  }
  const wait = task === "waits" ? "&wait=30" : "";
  check(await connection.request(request("GET", `${endpoint}/get?task_id=${id}${wait}`)));
}

const connections = await Promise.all(
  Array.from({ length: plan.connections }, () => Connection.open(plan.port)),
);
const startMs = performance.now();
const endMs = startMs + plan.seconds * 1000;
let done = 0;
await Promise.all(
  connections.map(async (connection) => {
    while (performance.now() < endMs) {
      await one(connection);
      done += 1;
    }
  }),
);
const perSecond = (done / (performance.now() - startMs)) * 1000;
for (const connection of connections) {
  connection.end();
}
process.stdout.write(`${JSON.stringify({ perSecond, done })}\n`);
