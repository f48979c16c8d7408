/**
 * Machines as jobs of Ray, by the API of jobs that its dashboard has (HTTP, version 4). A job has
 * the id of its machine in its own; its variables, the token among them, are those of its runtime
 * environment, which everybody sees who reaches the dashboard, and may run code there as well.
 */
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import {
  type ClusterMachine,
  DEPLOYMENT_LABEL,
  MACHINE_LABEL,
  type MachineOrder,
  type Machines,
  nameOf,
  secondsLeft,
} from "./machines.ts";
import { jobScript } from "./run.ts";

/** How long an answer may take. */
const ANSWER_TIMEOUT_MS = 60_000;

/** What an answer may have: a list of 10,000 jobs. */
const MAX_ANSWER_BYTES = 64 * 1024 ** 2;

/** Of the last line that a job wrote, or of an error. */
const MAX_LINE_CHARACTERS = 500;

/** A job as the API lists it. Those that were started by other means have no submission. */
interface Job {
  readonly submission_id?: string | null;
  readonly status?: string;
  readonly message?: string | null;
  readonly start_time?: number | null;
  readonly metadata?: { readonly [name: string]: string } | null;
}

interface RayOptions {
  /** Of the dashboard, such as `http://head:8265`. */
  readonly address: string;
  /** The value of a token, where the cluster asks for one. */
  readonly token: string | undefined;
  /** Fields of each job, as `entrypoint_num_gpus=1`. */
  readonly options: readonly string[];
  /** What a job runs. */
  readonly command: readonly string[];
  readonly now: () => number;
}

/** The launcher's machines on Ray. */
export class RayJobs implements Machines {
  readonly #options: RayOptions;
  readonly #fields: { readonly [name: string]: unknown };
  /** The address as people are told it, without the password that it may hold. */
  readonly #shown: string;

  constructor(options: RayOptions) {
    this.#options = options;
    this.#shown = options.address.replace(/\/\/[^/]*@/, "//…@");
    this.#fields = Object.fromEntries(options.options.map(fieldOf));
  }

  async start({ id, deploymentId, env, endsAtMs }: MachineOrder): Promise<void> {
    const { command, now } = this.#options;
    const waitSeconds = secondsLeft({ endsAtMs }, now());
    await this.#ask("POST", "", {
      // A job without them runs on the head node.
      ...{ entrypoint_num_cpus: 1, ...this.#fields },
      entrypoint: jobScript(command, { toldTogether: true }),
      submission_id: nameOf({ id }),
      metadata: { [MACHINE_LABEL]: id, [DEPLOYMENT_LABEL]: deploymentId },
      // Else Ray kills a job three seconds after it has told it to end.
      runtime_env: { env_vars: { ...env, RAY_JOB_STOP_WAIT_TIME_S: String(waitSeconds) } },
    });
  }

  /** Ray has no way to end a job by force: it does so itself, as long after the stop as the machine had to live. */
  async stop(machine: Pick<ClusterMachine, "id" | "deploymentId">): Promise<void> {
    const name = nameOf(machine);
    const answer = await this.#ask("POST", `${name}/stop`);
    if ((answer as { readonly stopped?: boolean } | undefined)?.stopped === false) {
      await this.#ask("DELETE", name);
    }
  }

  async list(): Promise<readonly ClusterMachine[]> {
    const jobs = await this.#ask("GET", "");
    if (!Array.isArray(jobs)) {
      throw new Error(`${this.#shown} lists no jobs: is it the dashboard of Ray?`);
    }
    return (jobs as readonly Job[]).flatMap((job) => this.#machineOf(job));
  }

  #machineOf({ submission_id, status = "", message, start_time, metadata }: Job): ClusterMachine[] {
    const { [MACHINE_LABEL]: id, [DEPLOYMENT_LABEL]: deploymentId } = metadata ?? {};
    if (id === undefined || deploymentId === undefined || submission_id !== nameOf({ id })) {
      return [];
    }
    const isWaiting = status === "PENDING";
    return [
      {
        ...{ id, deploymentId, startedAtMs: start_time ?? this.#options.now() },
        ...{ isWaiting, isOver: !isWaiting && status !== "RUNNING" },
        // Of one that runs, it says no more.
        reason: status === "RUNNING" ? "" : `${status}: ${lastLine(message ?? "")}`,
      },
    ];
  }

  /** Undefined: there is no such job. */
  async #ask(method: string, path: string, body?: object): Promise<unknown> {
    const { address, token } = this.#options;
    const url = `${address}/api/jobs/${path}`;
    // Not `fetch`, whose headers Ray takes for those of a browser, and refuses.
    const request = url.startsWith("https:") ? httpsRequest : httpRequest;
    let status: number | undefined;
    let text: string;
    try {
      const req = request(url, {
        method,
        headers: {
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(body && { "content-type": "application/json" }),
        },
        signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
      });
      req.end(body && JSON.stringify(body));
      const [res] = (await once(req, "response")) as [IncomingMessage];
      status = res.statusCode;
      text = await bounded(res);
    } catch (err) {
      const why = err instanceof Error ? err.message : String(err);
      throw new Error(`${this.#shown} does not answer: ${why}`, { cause: err });
    }
    if (status === 404 && path !== "") {
      return undefined;
    }
    if (status !== 200) {
      throw new Error(`${this.#shown} answered ${status}: ${lastLine(text)}`);
    }
    try {
      return JSON.parse(text);
    } catch (err) {
      throw new Error(`${this.#shown} answers with no JSON: is it the dashboard of Ray?`, {
        cause: err,
      });
    }
  }
}

async function bounded(res: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of res) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) {
      throw new Error("its answer is too large");
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** `entrypoint_resources={"h200": 1}`: what is JSON is that, and else a text. */
function fieldOf(option: string): [string, unknown] {
  const [, name = "", text = ""] = /^(\w+)=(.+)$/s.exec(option) ?? [];
  if (name === "") {
    throw new Error(
      `with --on ray, --option is a field of each job, such as entrypoint_num_gpus=1, not ${JSON.stringify(option)}`,
    );
  }
  try {
    return [name, JSON.parse(text)];
  } catch {
    // A text needs no quotes.
    return [name, text];
  }
}

/** Ray answers with stack traces and the end of logs, whose last line says most. */
function lastLine(text: string): string {
  return (text.trimEnd().split("\n").at(-1) ?? "").slice(0, MAX_LINE_CHARACTERS);
}
