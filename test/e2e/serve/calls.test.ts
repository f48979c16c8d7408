import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { refusal } from "./refusal.ts";
import { type Served, type Shown, serve } from "./served.ts";

let served: Served;
beforeAll(async () => {
  served = await serve("calls");
});
afterAll(() => served.stop());

const png = Buffer.from("89504e470d0a1a0a", "hex");

describe("a call", () => {
  it("of an api is answered with what the function returned, a string as text", async () => {
    const answer = await served.post("/repeat", { text: "ab", times: 2 });
    expect(answer).toMatchObject({ status: 200, text: "abab" });
    expect(answer.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  });

  it("leaves out what has a default", async () => {
    expect((await served.post("/repeat", { text: "é" })).text).toBe("é");
  });

  it("of a task runs as a task and is waited for", async () => {
    const answer = await served.post("/sum", { numbers: [1, 2.5] });
    expect(answer).toMatchObject({ status: 200, json: 3.5 });
    expect(answer.headers.get("content-type")).toBe("application/json; charset=utf-8");
  });

  it("of a task with an idempotency key runs once, and is the task of a submit with that key", async () => {
    const headers = { "idempotency-key": "call 1" };
    const numbers = [1, 2];
    const answers = await Promise.all([
      served.post("/sum", { numbers }, headers),
      served.post("/sum", { numbers }, headers),
    ]);
    expect(answers.map(({ json }) => json)).toEqual([3, 3]);
    const submitted = await served.post("/sum/submit", { numbers }, headers);
    expect(submitted.headers.get("idempotent-replayed")).toBe("true");
    expect(refusal(await served.post("/sum", { numbers: [4] }, headers))).toMatchObject({
      status: 409,
      reason: "IDEMPOTENCY_KEY_REUSED",
    });
  });

  it("of an api with an idempotency key is refused, because it would run again", async () => {
    const headers = { "idempotency-key": "call 2" };
    const refused = refusal(await served.post("/repeat", { text: "a" }, headers));
    expect(refused).toMatchObject({ status: 400, reason: "REQUEST_INVALID" });
    expect(refused.message).toMatch(
      /repeat, which is an api: .*leave the key out, or make it a task/,
    );
  });

  it("without a body is a call without arguments", async () => {
    expect((await served.send("/keys", undefined)).json).toEqual([]);
  });

  it("gives a file with its type, never as a page of this origin", async () => {
    const { status, text, headers } = await served.post("/page", {});
    expect({ status, text }).toEqual({ status: 200, text: "<script>alert(1)</script>" });
    expect(headers.get("content-type")).toBe("text/html");
    expect(headers.get("content-disposition")).toBe("inline");
    // Its scripts run in an origin of their own.
    expect(headers.get("content-security-policy")).toMatch(/^sandbox (?!.*allow-same-origin)/);
    expect(headers.get("x-content-type-options")).toBe("nosniff");
  });
});

describe.each(["describe", "describe_later"])("files for %s", (endpoint) => {
  it("arrive from multipart with their names, beside lists and values", async () => {
    const form = new FormData();
    form.set("image", new Blob([png], { type: "image/png" }), "../a b.png");
    form.append("rest", new Blob(["one"], { type: "text/plain" }), "1.txt");
    form.append("rest", new Blob(["two"]), "2.bin");
    form.set("title", "12");
    form.append("labels", "bare");
    form.append("labels", '"as JSON"');
    form.set("sizes", "7");
    const answer = await served.send(`/${endpoint}`, form);
    expect(answer.json).toEqual({
      image: { name: "a b.png", type: "image/png", text: png.toString() },
      rest: [
        { name: "1.txt", type: "text/plain", text: "one" },
        { name: "2.bin", type: "application/octet-stream", text: "two" },
      ],
      title: "12",
      labels: ["bare", "as JSON"],
      sizes: [7],
    });
  });

  it("arrive from JSON as data: URLs", async () => {
    const answer = await served.post(`/${endpoint}`, {
      image: "data:image/gif;base64,aGk=",
      rest: ["data:,plain%20text"],
    });
    expect(answer.json).toEqual({
      image: { name: "", type: "image/gif", text: "hi" },
      rest: [{ name: "", type: "text/plain", text: "plain text" }],
    });
  });

  it("are not fetched from URLs, in JSON or in a form", async () => {
    const form = new FormData();
    form.set("image", "http://127.0.0.1/secret.png");
    for (const answer of [
      await served.post(`/${endpoint}`, { image: "http://127.0.0.1/secret.png" }),
      await served.send(`/${endpoint}`, form),
    ]) {
      const { status, reason, message, fields } = refusal(answer);
      expect({ status, reason, fields }).toEqual({
        status: 400,
        reason: "ARGUMENTS_INVALID",
        fields: ["image"],
      });
      expect(message).toContain("files are not fetched from URLs: send the file itself");
    }
  });

  it.each([
    ["a missing file", () => new FormData(), "is required: send a file"],
    ["a file of another type", () => formOf(["image", "application/pdf"]), "takes image/*"],
    [
      "two files where one is taken",
      () => formOf(["image", "image/png"], ["image", "image/png"]),
      "takes one file, 2 were sent",
    ],
    [
      "too many files",
      () => formOf(["image", "image/png"], ...Array(4).fill(["rest", "text/plain"])),
      "takes at most 3 files, 4 were sent",
    ],
    ["a file too large", () => formOf(["image", "image/png", 1_000_001]), "at most 1000000 bytes"],
    [
      "a file where a value belongs",
      () => {
        const form = formOf(["image", "image/png"]);
        form.set("title", new Blob([Buffer.from([0xff])]), "file");
        return form;
      },
      "is a file, but this argument takes none",
    ],
  ] as const)("are refused before anything runs: %s", async (_, form, wanted) => {
    const { status, reason, message } = refusal(await served.send(`/${endpoint}`, form()));
    expect({ status, reason }).toEqual({ status: 400, reason: "ARGUMENTS_INVALID" });
    expect(message).toContain(wanted);
  });
});

function formOf(...files: (readonly [name: string, type: string, size?: number])[]): FormData {
  const form = new FormData();
  for (const [name, type, size = 1] of files) {
    form.append(name, new Blob([Buffer.alloc(size)], { type }), "file");
  }
  return form;
}

describe("a method that a path does not take", () => {
  it.each([
    ["GET", "/repeat", "POST"],
    ["HEAD", "/repeat", "POST"],
    ["OPTIONS", "/repeat", "POST"],
    ["DELETE", "/repeat", "POST"],
    ["PUT", "/sum/submit", "POST"],
    ["PATCH", "/sum/status?task_id=x", "GET, HEAD"],
    ["POST", "/sum/get?task_id=x", "GET, HEAD"],
    ["GET", "/sum/cancel?task_id=x", "POST, PUT"],
    ["DELETE", "/sum/retry?task_id=x", "PUT, POST"],
    ["POST", "/sum/events?task_id=x", "GET"],
    ["POST", "/livez", "GET, HEAD"],
    ["POST", "/%6Civez", "GET, HEAD"],
    ["OPTIONS", "/livez", "GET, HEAD"],
    ["DELETE", "/readyz", "GET, HEAD"],
    ["POST", "/docs.json?x=1", "GET, HEAD"],
    ["PATCH", "/", "GET, HEAD"],
    ["GET", "/tessera.v1.TaskService/SubmitTask", "POST"],
    ["PUT", "/tessera.v1.TaskService/GetTask", "GET, POST"],
  ])("%s %s is answered 405 with the methods that it takes", async (method, path, allow) => {
    const answer = await served.fetch(path, { method });
    expect(answer.headers.get("allow")).toBe(allow);
    expect(answer.status).toBe(405);
    if (method !== "HEAD") {
      expect(refusal(answer).reason).toBe("METHOD_NOT_ALLOWED");
    }
  });

  it("is not asked about where there is no endpoint", async () => {
    expect(refusal(await served.get("/favicon.ico"))).toMatchObject({
      status: 404,
      reason: "ENDPOINT_NOT_FOUND",
    });
  });
});

describe("documents", () => {
  it("describe every endpoint as existing clients read it", async () => {
    const { json } = await served.get("/schema.json");
    const { routes, ...service } = json as { routes: { name: string }[] };
    expect(service).toMatchObject({ name: "calls", type: "service" });
    expect(routes.find(({ name }) => name === "repeat_later")).toMatchObject({
      route: "/repeat_later",
      is_task: true,
      description: "Repeats a text.",
      input: { type: "object", required: ["text"] },
      output: { type: "string" },
    });
    expect((await served.get("/docs.json")).json).toMatchObject({ openapi: "3.1.0" });
  });

  it("are a page at the root, and health beside it", async () => {
    const page = await served.get("/");
    expect(page.headers.get("content-type")).toMatch(/^text\/html/);
    expect((await served.get("/livez")).json).toEqual({ status: "ok" });
    expect((await served.get("/readyz")).json).toEqual({ status: "ready" });
  });
});

describe("states are told in the words of", () => {
  it.each([
    ["a BentoML client from 1.4.14", "BentoML HTTP Client/1.4.14", "pending", "completed"],
    ["a BentoML client from 2.0.0", "BentoML HTTP Client/2.0.0", "pending", "completed"],
    ["an older BentoML client", "BentoML HTTP Client/1.4.13", "in_progress", "success"],
    ["an unknown BentoML client", "BentoML HTTP Client/dev", "queued", "success"],
    ["everyone else", "curl/8.0", "queued", "success"],
  ])("%s", async (_, agent, submitted, ended) => {
    const headers = { "user-agent": agent };
    const answer = await served.post("/sum/submit", { numbers: [] }, headers);
    const { task_id: id, status } = answer.json as Shown;
    expect(status).toBe(submitted);
    await served.result("sum", id);
    const shown = await served.get(`/sum/status?task_id=${id}`, headers);
    expect(shown.json).toMatchObject({ status: ended });
    expect((await served.get(`/sum/events?task_id=${id}`, headers)).text).toContain(
      `"status":"${ended}"`,
    );
  });
});
