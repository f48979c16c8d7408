/**
 * A small deployment for the tests of the page: speaks the data plane as the API
 * is described, with tasks that a test moves on step by step.
 */
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { playground } from "../../../src/server/pages/playground.ts";
import { openApiDocument } from "../../../src/service/openapi/document.ts";
import { schemaDocument } from "../../../src/service/schema.ts";
import { gradientPng } from "./pixels.ts";
import { SERVICE } from "./service.ts";

type Event = { readonly [member: string]: unknown };

interface Task {
  readonly id: string;
  readonly endpoint: string;
  readonly body: unknown;
  readonly shown: object;
  readonly events: (Event & { sequence: number; name: string })[];
  readonly watchers: Set<() => void>;
  status: string;
}

export interface Deployment extends AsyncDisposable {
  readonly url: string;
  /** What arrived at `POST /{endpoint}` last. */
  readonly received: () => { readonly contentType: string; readonly body: string };
  /** The task that was submitted last. */
  readonly lastTask: () => Task;
  /** Moves a task on: into a state, to some progress, or by a log line. */
  readonly move: (task: Task, event: Event) => void;
  /** Sends this to the one who called `tell`. */
  readonly tell: (event: string) => void;
  /** Breaks all event streams, as a lost connection does. */
  readonly breakStreams: () => void;
}

export interface DeploymentOptions {
  /** The token that every call but the page itself needs. */
  readonly token?: string;
}

const FINAL = ["success", "failure", "cancelled"];

/** Starts a deployment of the gallery service on a free port of this machine. */
export async function startDeployment({ token }: DeploymentOptions = {}): Promise<Deployment> {
  const app = Fastify({ forceCloseConnections: true });
  const tasks = new Map<string, Task>();
  const streams = new Set<FastifyReply>();
  let received = { contentType: "", body: "" };

  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_req, body, done) => done(null, body));
  app.addHook("onRequest", async (req, res) => {
    const isPublic = req.url === "/" || req.url.startsWith("/assets/");
    if (token && !isPublic && req.headers.authorization !== `Bearer ${token}`) {
      return refuse(res, 401, {
        code: "unauthenticated",
        reason: "TOKEN_INVALID",
        message: "no valid token",
      });
    }
  });
  await app.register(playground);
  app.get("/readyz", async () => "ready");
  app.get("/schema.json", async () => schemaDocument(SERVICE));
  app.get("/docs.json", async () =>
    openApiDocument(SERVICE, { version: "1", authorization: token !== undefined }),
  );

  const note = (req: FastifyRequest) => {
    const body = (req.body as Buffer | undefined)?.toString("latin1") ?? "";
    received = { contentType: req.headers["content-type"] ?? "", body };
    return body;
  };
  app.post("/summarize", async (req, res) => summarize(JSON.parse(note(req)), res));
  let telling: FastifyReply | undefined;
  app.post("/tell", (req, res) => {
    note(req);
    telling = res.hijack();
    const type = String(req.headers.accept).split(",")[0];
    res.raw.writeHead(200, { "content-type": type, "tessera-pieces": "text" });
    res.raw.flushHeaders();
  });
  app.post("/classify", async (req) => {
    note(req);
    return { digit: 7, confidence: 0.982, sure: true, others: null };
  });
  const move = (task: Task, event: Event) => {
    const state = event.state as { status: string } | undefined;
    task.status = state?.status ?? task.status;
    const sequence = task.events.length + 1;
    const name = Object.keys(event)[0] ?? "";
    task.events.push({ sequence, name, time: new Date().toISOString(), attempt: 1, ...event });
    for (const watcher of task.watchers) {
      watcher();
    }
  };
  const submit = (endpoint: string, body: unknown, retryOf?: string) => {
    const id = `019a0b5e-7c1d-800f-8f21-${String(tasks.size).padStart(12, "0")}`;
    const createdAt = new Date().toISOString();
    const expiresAt = new Date(Date.now() + 86_400_000).toISOString();
    const times = { created_at: createdAt, expires_at: expiresAt };
    const shown = { task_id: id, ...times, ...(retryOf ? { retry_of: retryOf } : {}) };
    const task: Task = { id, endpoint, body, shown, events: [], watchers: new Set(), status: "" };
    tasks.set(id, task);
    move(task, { state: { status: "queued" } });
    return { ...shown, status: "queued" };
  };
  const withTask = (act: (task: Task, req: FastifyRequest, res: FastifyReply) => unknown) =>
    async function handle(req: FastifyRequest, res: FastifyReply) {
      const { task_id: id } = req.query as { task_id: string };
      const task = tasks.get(id);
      const message = `task ${id} does not exist or has expired`;
      return task
        ? act(task, req, res)
        : refuse(res, 404, { code: "not_found", reason: "TASK_NOT_FOUND", message });
    };
  addTaskRoutes(app, { submit, withTask, move, streams });

  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  return {
    url,
    received: () => received,
    lastTask: () => [...tasks.values()].at(-1) as Task,
    move,
    tell: (event) => telling?.raw.write(event),
    breakStreams: () => {
      for (const stream of streams) {
        stream.raw.destroy();
      }
    },
    [Symbol.asyncDispose]: () => app.close(),
  };
}

interface TaskRoutes {
  readonly submit: (endpoint: string, body: unknown, retryOf?: string) => object;
  readonly withTask: (
    act: (task: Task, req: FastifyRequest, res: FastifyReply) => unknown,
  ) => (req: FastifyRequest, res: FastifyReply) => Promise<unknown>;
  readonly move: (task: Task, event: Event) => void;
  readonly streams: Set<FastifyReply>;
}

function addTaskRoutes(
  app: FastifyInstance,
  { submit, withTask, move, streams }: TaskRoutes,
): void {
  app.post("/:endpoint/submit", async (req, res) => {
    const { endpoint } = req.params as { endpoint: string };
    return res.code(202).send(submit(endpoint, req.body));
  });
  app.get(
    "/:endpoint/status",
    withTask((task) => ({ ...task.shown, status: task.status })),
  );
  app.get("/:endpoint/get", withTask(sendResult));
  app.post(
    "/:endpoint/cancel",
    withTask((task, req, res) => {
      const { abort } = req.query as { abort?: string };
      if (task.status === "running" && abort !== "true") {
        const message = "the task is running; cancel it with abort=true";
        return refuse(res, 409, { code: "aborted", reason: "TASK_ALREADY_STARTED", message });
      }
      move(task, { state: { status: "cancelled" } });
      return { task_id: task.id, status: "cancelled" };
    }),
  );
  app.put(
    "/:endpoint/retry",
    withTask((task, _req, res) => res.code(202).send(submit(task.endpoint, task.body, task.id))),
  );
  app.get(
    "/:endpoint/events",
    withTask((task, req, res) => streamEvents(task, { req, res, streams })),
  );
}

function streamEvents(
  task: Task,
  { req, res, streams }: { req: FastifyRequest; res: FastifyReply; streams: Set<FastifyReply> },
): FastifyReply {
  let sent = Number(req.headers["last-event-id"] ?? 0);
  res.hijack();
  res.raw.writeHead(200, { "content-type": "text/event-stream" });
  res.raw.write(": hello\n\n");
  const write = () => {
    for (const { name, ...event } of task.events.slice(sent)) {
      res.raw.write(`id: ${event.sequence}\nevent: ${name}\ndata: ${JSON.stringify(event)}\n\n`);
    }
    sent = task.events.length;
    if (FINAL.includes(task.status)) {
      res.raw.end();
    }
  };
  task.watchers.add(write);
  streams.add(res);
  res.raw.on("close", () => {
    task.watchers.delete(write);
    streams.delete(res);
  });
  write();
  return res;
}

function sendResult(task: Task, _req: FastifyRequest, res: FastifyReply): unknown {
  if (task.status === "failure") {
    const message = "cannot divide by zero";
    return refuse(res, 500, { code: "internal", reason: "TASK_FAILED", message });
  }
  if (task.endpoint === "contact_sheet") {
    res.header("content-disposition", 'inline; filename="sheet.png"');
    return res.type("image/png").send(gradientPng());
  }
  return ["The first summary.", "The second summary."];
}

/** Results that run scripts where a browser shows them by themselves, by their type. */
const DRAWINGS: Readonly<Record<string, string>> = {
  "image/svg+xml": `<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><script>alert(1)</script></svg>`,
  "application/xhtml+xml": `<html xmlns="http://www.w3.org/1999/xhtml"><script>alert(1)</script></html>`,
};

function summarize(given: { text: string; sentences?: number }, res: FastifyReply): FastifyReply {
  if (given.text.includes("forbidden")) {
    return refuse(res, 400, {
      code: "invalid_argument",
      reason: "ARGUMENTS_INVALID",
      message: "the arguments do not fit the input schema",
      violations: [
        { field: "text", description: "must not contain 'forbidden'" },
        { field: "", description: "too much at once" },
      ],
    });
  }
  const drawn = DRAWINGS[given.text];
  if (drawn !== undefined) {
    return res.type(given.text).send(drawn);
  }
  return res.type("text/plain; charset=utf-8").send(`In short <b>: ${given.text.slice(0, 400)}`);
}

interface Refusal {
  readonly code: string;
  readonly reason: string;
  readonly message: string;
  readonly violations?: readonly { readonly field: string; readonly description: string }[];
}

function refuse(res: FastifyReply, status: number, refusal: Refusal): FastifyReply {
  const { code, reason, message, violations } = refusal;
  const details: object[] = [
    { type: "google.rpc.ErrorInfo", value: "", debug: { reason, domain: "tessera" } },
  ];
  if (violations) {
    details.push({
      type: "google.rpc.BadRequest",
      value: "",
      debug: { fieldViolations: violations },
    });
  }
  return res.code(status).send({ code, message, details });
}
