/** A service of the fixtures, served with real workers on a free port, and what its callers do. */
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { text as readText } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { serveService } from "../../../src/app/serve.ts";
import { readServeConfig, type ServeConfig } from "../../../src/config/serve.ts";

export interface ServedOptions extends Partial<ServeConfig> {
  readonly token?: string;
}

/** A file of the fixtures for this folder. */
export function fixture(name: string): string {
  return fileURLToPath(new URL(`../../fixtures/services/serve/${name}`, import.meta.url));
}

/** Serves `fixtures/services/serve/<name>.ts`, quiet and with short times unless told otherwise. */
export function serve(name: string, options: ServedOptions = {}): Promise<Served> {
  return serveFile(fixture(`${name}.ts`), options);
}

/** The same for any service. */
export async function serveFile(path: string, options: ServedOptions = {}): Promise<Served> {
  const { token, ...changes } = options;
  const { database = ":memory:" } = changes;
  const { config } = readServeConfig(path, { port: "0", database }, {});
  const quick = { workers: 1, logLevel: "silent", graceMs: 300, drainMs: 300 };
  const service = await serveService({ ...config, ...quick, ...changes }, { token });
  return new Served(service.port, () => service.stop());
}

/** What the data plane answers. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
  readonly text: string;
  /** The body as JSON; undefined when it is none. */
  readonly json: unknown;
}

/** A task as `status` shows it. */
export interface Shown {
  readonly task_id: string;
  readonly status: string;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly expires_at: string;
  readonly attempt: number;
  readonly progress: { readonly fraction: number; readonly message: string } | null;
  readonly retry_of: string | null;
  readonly queue_position?: number;
  readonly estimated_start?: string;
  readonly failure: ShownFailure;
  readonly attempts: readonly { readonly failure: ShownFailure | null }[];
}

interface ShownFailure {
  readonly reason: string;
  readonly code: string;
  readonly message: string;
}

export class Served implements AsyncDisposable {
  readonly port: number;
  readonly origin: string;
  readonly stop: () => Promise<void>;

  constructor(port: number, stop: () => Promise<void>) {
    this.port = port;
    this.origin = `http://127.0.0.1:${port}`;
    this.stop = stop;
  }

  async fetch(path: string, init: RequestInit = {}): Promise<Answer> {
    const res = await fetch(this.origin + path, init);
    const body = Buffer.from(await res.arrayBuffer());
    const text = body.toString();
    return { status: res.status, headers: res.headers, body, text, json: parsed(text) };
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.fetch(path, { headers });
  }

  /** Posts arguments as JSON. */
  post(path: string, values: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const body = JSON.stringify(values);
    return this.send(path, body, { "content-type": "application/json", ...headers });
  }

  /** Posts a body as it is. */
  send(
    path: string,
    body: RequestInit["body"] | undefined,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    return this.fetch(path, { method: "POST", ...(body !== undefined && { body }), headers });
  }

  /** Submits a task and gives its id. */
  async submit(endpoint: string, values: unknown): Promise<string> {
    const answer = await this.post(`/${endpoint}/submit`, values);
    expect(answer.status, answer.text).toBe(202);
    return (answer.json as Shown).task_id;
  }

  async status(endpoint: string, taskId: string, waitSeconds = 0): Promise<Shown> {
    const wait = waitSeconds === 0 ? "" : `&wait=${waitSeconds}`;
    const answer = await this.get(`/${endpoint}/status?task_id=${taskId}${wait}`);
    expect(answer.status, answer.text).toBe(200);
    return answer.json as Shown;
  }

  /** The result of a task, once it has ended. */
  result(endpoint: string, taskId: string): Promise<Answer> {
    return this.get(`/${endpoint}/get?task_id=${taskId}&wait=30`);
  }

  /**
   * The task once `enough` is true of it, asking anew at each of its events: `wait` of its status
   * knows no change that came before the question.
   */
  async until(endpoint: string, taskId: string, enough: (task: Shown) => boolean): Promise<Shown> {
    const leaving = new AbortController();
    const events = await fetch(`${this.origin}/${endpoint}/events?task_id=${taskId}`, {
      signal: leaving.signal,
    });
    try {
      for await (const _ of events.body ?? []) {
        const task = await this.status(endpoint, taskId);
        if (enough(task)) {
          return task;
        }
      }
    } finally {
      leaving.abort();
    }
    throw new Error(`it has ended: ${JSON.stringify(await this.status(endpoint, taskId))}`);
  }

  /** The task when it has ended. */
  async ended(endpoint: string, taskId: string): Promise<Shown> {
    await this.result(endpoint, taskId);
    return this.status(endpoint, taskId);
  }

  /** A request whose path is sent as it stands, which `fetch` would normalise. */
  raw(method: string, path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const { port } = this;
      const req = httpRequest({ host: "127.0.0.1", port, method, path, headers }, async (res) => {
        const text = await readText(res);
        resolve({
          status: res.statusCode ?? 0,
          headers: new Headers(res.headers as Record<string, string>),
          body: Buffer.from(text),
          text,
          json: parsed(text),
        });
      });
      req.on("error", reject).end();
    });
  }

  /** Writes bytes to a connection and gives all that comes back until its end. */
  async bytes(data: string | Buffer): Promise<string> {
    const socket = connect(this.port, "127.0.0.1");
    socket.write(data);
    return readText(socket);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not every answer is JSON.
    return undefined;
  }
}
