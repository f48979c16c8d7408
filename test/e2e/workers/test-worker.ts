/** A worker of WorkerService for tests: it does what a test says, honest or not. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import {
  type Assignment,
  RegisterRequestSchema,
  type RegisterResponse,
  WorkerService,
  type WorkRequestSchema,
  type WorkResponse,
} from "../../../gen/tessera/v1/worker_pb.js";
import { SendQueue } from "../../../src/api/worker/work.ts";

type Request = MessageInitShape<typeof WorkRequestSchema>;
type Result = NonNullable<
  Extract<Request["message"], { case: "results" }>["value"]["results"]
>[number];

/** What a worker sends of a call that ends with this JSON. */
export function json(id: bigint, value: unknown): Result {
  return { id, end: { case: "json", value: JSON.stringify(value) } };
}

export class TestWorker implements AsyncDisposable {
  readonly client: Client<typeof WorkerService>;
  readonly #sessions: Http2SessionManager;
  registered: RegisterResponse | undefined;
  /** What it sends on the stream that is open. */
  #queue = new SendQueue<Request>();
  readonly assigned: Assignment[] = [];
  readonly heard: WorkResponse[] = [];
  #wakes = new Set<() => void>();
  /** Resolves with the error of the stream when it ends. */
  ended: Promise<unknown> = Promise.resolve();

  constructor(url: string, token: string) {
    const authorize: Interceptor = (next) => (req) => {
      req.header.set("authorization", `Bearer ${token}`);
      return next(req);
    };
    this.#sessions = new Http2SessionManager(url);
    this.client = createClient(
      WorkerService,
      createGrpcTransport({
        baseUrl: url,
        interceptors: [authorize],
        sessionManager: this.#sessions,
      }),
    );
  }

  get session(): string {
    return this.registered?.session ?? "";
  }

  async register(changes: MessageInitShape<typeof RegisterRequestSchema> = {}): Promise<this> {
    const runtime = { language: "test", hostname: "elsewhere" };
    const usual = { deployment: "echo", protocolMin: 1, protocolMax: 1, runtime };
    const request = create(RegisterRequestSchema, { ...usual, ...changes } as typeof changes);
    this.registered = await this.client.register(request);
    return this;
  }

  /** Opens the stream, and offers slots. */
  async open(slots: Readonly<Record<string, number>> = { say: 2, work: 2 }): Promise<this> {
    this.#queue = new SendQueue();
    this.send({ case: "hello", value: { session: this.session } });
    const responses = this.client.work(this.#queue);
    this.ended = this.#read(responses).then(
      () => undefined,
      (err: unknown) => err,
    );
    await this.until(({ message }) => message.case === "welcome");
    this.send({ case: "offer", value: { slots } });
    return this;
  }

  send(message: NonNullable<Request["message"]>): void {
    this.#queue.send({ message });
  }

  results(...results: Result[]): void {
    this.send({ case: "results", value: { results } });
  }

  /** The next call that it is given and has not taken; acknowledged unless `accepts` is false. */
  async take({ accepts = true } = {}): Promise<Assignment> {
    for (;;) {
      const [next] = this.assigned.splice(0, 1);
      if (next) {
        if (accepts) {
          this.send({ case: "accepted", value: { ids: [next.id] } });
        }
        return next;
      }
      await this.#next();
    }
  }

  /** The first message that is so, of all that came. */
  async until(isSo: (response: WorkResponse) => boolean): Promise<WorkResponse> {
    for (;;) {
      const found = this.heard.find(isSo);
      if (found) {
        return found;
      }
      await this.#next();
    }
  }

  /** Resolves when this result is acknowledged, with whether it was stale. */
  async acknowledged(id: bigint): Promise<"stale" | "recorded"> {
    const { message } = await this.until(
      (each) => each.message.case === "resultsAck" && each.message.value.ids.includes(id),
    );
    const isStale = message.case === "resultsAck" && message.value.stale.includes(id);
    return isStale ? "stale" : "recorded";
  }

  /** Breaks the connection. */
  async cut(): Promise<void> {
    this.#sessions.abort(new Error("cut"));
    await this.ended;
    this.heard.length = 0;
  }

  get silenceMs(): number {
    const { silenceLimit } = this.registered ?? {};
    return silenceLimit ? durationMs(silenceLimit) : 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#queue.end();
    // What it sent last arrives.
    await this.ended;
    this.#sessions.abort();
  }

  async #read(responses: AsyncIterable<WorkResponse>): Promise<void> {
    for await (const response of responses) {
      this.heard.push(response);
      if (response.message.case === "assignments") {
        this.assigned.push(...response.message.value.calls);
      }
      for (const wake of this.#wakes) {
        wake();
      }
      this.#wakes.clear();
    }
  }

  #next(): Promise<void> {
    return new Promise((resolve) => this.#wakes.add(resolve));
  }
}
