/** Calls of a served service, as any HTTP client makes them. */
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";

export interface Answer {
  readonly status: number;
  readonly body: string;
}

export async function get(url: string): Promise<Answer> {
  const response = await fetch(url);
  return { status: response.status, body: await response.text() };
}

export async function post(url: string, args: object = {}): Promise<Answer> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(args),
  });
  return { status: response.status, body: await response.text() };
}

/** Queues a task; resolves with its id. */
export async function submit(url: string, endpoint: string, args: object): Promise<string> {
  const { status, body } = await post(`${url}/${endpoint}/submit`, args);
  if (status !== 202) {
    throw new Error(`${endpoint} was not submitted: ${status} ${body}`);
  }
  return (JSON.parse(body) as { task_id: string }).task_id;
}

export async function result(url: string, endpoint: string, taskId: string): Promise<Answer> {
  return await get(`${url}/${endpoint}/get?task_id=${taskId}&wait=30`);
}

/** One connection that stays open between requests. */
export class KeptConnection implements Disposable {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  async request(method: string, path: string, args?: object): Promise<Answer> {
    return await new Promise((resolve, reject) => {
      const headers = args === undefined ? {} : { "content-type": "application/json" };
      const req = request(`${this.#url}${path}`, { method, agent: this.#agent, headers }, (res) => {
        text(res).then((body) => resolve({ status: res.statusCode ?? 0, body }), reject);
      });
      req.once("error", reject).end(args && JSON.stringify(args));
    });
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}
