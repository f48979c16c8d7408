import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { PNG } from "pngjs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type StartedService, serveService } from "../../../src/app/serve.ts";
import { readServeConfig } from "../../../src/config/serve.ts";

const EXAMPLES = new URL("../../../examples/", import.meta.url);
const SERVE_MS = 30_000;

async function serve(example: string): Promise<{ served: StartedService; url: string }> {
  const path = fileURLToPath(new URL(`${example}/service.ts`, EXAMPLES));
  const flags = { port: "0", workers: "1" };
  const { config, secrets } = readServeConfig(path, flags, { TESSERA_LOG_LEVEL: "silent" });
  const served = await serveService(config, secrets);
  return { served, url: `http://127.0.0.1:${served.port}` };
}

/** What is looked at of a path in a document. */
interface Operations {
  readonly post?: {
    readonly requestBody?: {
      readonly content: { readonly [type: string]: { readonly example?: object } };
    };
  };
}

function sample(name: string): File {
  const data = readFileSync(new URL(`digits/images/${name}`, EXAMPLES));
  return new File([data], name, { type: "image/png" });
}

function form(argument: string, files: readonly File[]): FormData {
  const data = new FormData();
  for (const file of files) {
    data.append(argument, file);
  }
  return data;
}

function json(args: object): RequestInit {
  return {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(args),
  };
}

/** Queues a task; resolves with its id. */
async function submit(url: string, init: RequestInit): Promise<string> {
  const response = await fetch(`${url}/submit`, { method: "POST", ...init });
  expect(response.status).toBe(202);
  return ((await response.json()) as { task_id: string }).task_id;
}

function result(url: string, taskId: string): Promise<Response> {
  return fetch(`${url}/get?task_id=${taskId}&wait=30`);
}

/** The events of a task, of which each is a block of lines, until its end. */
async function events(url: string, taskId: string): Promise<{ kind: string; data: unknown }[]> {
  const text = await (await fetch(`${url}/events?task_id=${taskId}`)).text();
  return text
    .split("\n\n")
    .map((block) => ({
      kind: /^event: (.*)$/m.exec(block)?.[1] ?? "",
      data: JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? "null") as unknown,
    }))
    .filter(({ kind }) => kind !== "");
}

describe("the digits example, served", { timeout: SERVE_MS }, () => {
  const names = readdirSync(new URL("digits/images/", EXAMPLES)).sort();
  let served: StartedService;
  let url: string;

  beforeAll(async () => {
    ({ served, url } = await serve("digits"));
  }, SERVE_MS);
  afterAll(() => served.stop());

  it.each(["0-a.png", "3-b.png", "7-a.png", "9-d.png"])("reads %s", async (name) => {
    const init = { method: "POST", body: form("image", [sample(name)]) };
    const response = await fetch(`${url}/classify`, init);
    expect(response.status).toBe(200);
    const { digit, confidence } = (await response.json()) as Record<string, number>;
    expect(digit).toBe(Number(name[0]));
    expect(confidence).toBeGreaterThan(0.5);
  });

  it("takes the examples of its document", async () => {
    const document = (await (await fetch(`${url}/docs.json`)).json()) as {
      paths: Record<string, Operations>;
    };
    let count = 0;
    for (const [path, { post }] of Object.entries(document.paths)) {
      const example = post?.requestBody?.content["application/json"]?.example;
      if (example !== undefined) {
        const response = await fetch(url + path, json(example));
        expect(response.ok, `${path}: ${await response.text()}`).toBe(true);
        count += 1;
      }
    }
    expect(count).toBeGreaterThanOrEqual(4);
  });

  it("counts the digits that it reads, and how sure it was", async () => {
    const counted = async (series: string): Promise<number> => {
      const text = await (await fetch(`${url}/metrics`)).text();
      const line = text.split("\n").find((each) => each.startsWith(series));
      return Number(line?.split(" ").at(-1) ?? 0);
    };
    const sevens = 'digits_read_total{deployment="digits",digit="7",endpoint="classify",';
    const [read, sure] = [await counted(sevens), await counted("digits_confidence_count")];
    const init = { method: "POST", body: form("image", [sample("7-a.png")]) };
    expect((await fetch(`${url}/classify`, init)).status).toBe(200);
    expect(await counted(sevens)).toBe(read + 1);
    expect(await counted("digits_confidence_count")).toBe(sure + 1);
  });

  it("refuses a picture outside a form, and says how to send it", async () => {
    const response = await fetch(`${url}/classify`, {
      method: "POST",
      headers: { "content-type": "image/png" },
      body: await sample("0-a.png").bytes(),
    });
    expect(response.status).toBe(415);
    expect(await response.text()).toContain("multipart/form-data");
  });

  it("reads many pictures as a task, and tells how far it is", async () => {
    const task = `${url}/classify_batch`;
    const taskId = await submit(task, { body: form("images", names.map(sample)) });
    const answers = (await (await result(task, taskId)).json()) as Record<string, unknown>[];
    expect(answers.map(({ filename }) => filename)).toEqual(names);
    expect(answers.map(({ digit }) => digit)).toEqual(names.map((name) => Number(name[0])));

    const log = await events(task, taskId);
    const fractions = log
      .filter(({ kind }) => kind === "progress")
      .map(({ data }) => (data as { progress: { fraction: number } }).progress.fraction);
    expect(fractions.length).toBeGreaterThan(1);
    expect(fractions).toEqual([...fractions].sort((a, b) => a - b));
    expect(fractions.at(-1)).toBe(1);
    expect(log.slice(-2).map(({ kind }) => kind)).toEqual(["state", "end"]);
  });

  it("draws a contact sheet, which comes back as a picture", async () => {
    const sheet = `${url}/contact_sheet`;
    const taskId = await submit(sheet, { body: form("images", names.map(sample)) });
    const response = await result(sheet, taskId);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("image/png");
    expect(response.headers.get("content-disposition")).toContain("contact-sheet.png");
    const { width, height } = PNG.sync.read(Buffer.from(await response.bytes()));
    expect({ width, height }).toEqual({ width: 16 + 6 * 168, height: 16 + 4 * 200 });
  });

  it.each([
    ["another kind of picture", new File(["GIF89a"], "a.gif", { type: "image/gif" })],
    ["text", new File(["hello"], "a.txt", { type: "text/plain" })],
  ])("refuses a file that is %s, and names it", async (_, file) => {
    const init = { method: "POST", body: form("image", [file]) };
    const response = await fetch(`${url}/classify`, init);
    expect(response.status).toBe(400);
    const { details } = (await response.json()) as { details: { debug: object }[] };
    expect(details.map(({ debug }) => debug)).toMatchObject([
      { reason: "ARGUMENTS_INVALID" },
      { fieldViolations: [{ field: "image", description: expect.stringMatching("image/png") }] },
      { requestId: response.headers.get("x-request-id") },
    ]);
  });

  it("says what is wrong with a picture that is none", async () => {
    const file = new File(["not a picture"], "fake.png", { type: "image/png" });
    const init = { method: "POST", body: form("image", [file]) };
    const response = await fetch(`${url}/classify`, init);
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("fake.png is not a PNG file");
  });

  it("has a page and documents", async () => {
    const page = await fetch(url);
    expect(page.headers.get("content-type")).toContain("text/html");
    const documents = (await (await fetch(`${url}/docs.json`)).json()) as {
      paths: Record<string, Operations>;
    };
    expect(Object.keys(documents.paths)).toEqual(
      expect.arrayContaining(["/classify", "/classify_batch/submit", "/contact_sheet/get"]),
    );
    const response = await fetch(`${url}/schema.json`);
    expect(await response.json()).toMatchObject({ name: "digits" });
  });
});

describe("the summarizer example, served", { timeout: SERVE_MS }, () => {
  const texts = ["honeybees", "tides", "printing"].map((name) =>
    readFileSync(new URL(`summarizer/articles/${name}.txt`, EXAMPLES), "utf8"),
  );
  let served: StartedService;
  let url: string;

  beforeAll(async () => {
    ({ served, url } = await serve("summarizer"));
  }, SERVE_MS);
  afterAll(() => served.stop());

  /** Every sentence of a summary stands in its text. */
  function expectSummary(summary: string, text = ""): void {
    const flat = text.replace(/\s+/g, " ");
    const sentences = summary.split(/(?<=[.!?]) (?=[A-Z])/);
    expect(sentences.length).toBeGreaterThanOrEqual(2);
    for (const sentence of sentences) {
      expect(flat).toContain(sentence.replace(/\s+/g, " "));
    }
  }

  it("sums up an article in the call", async () => {
    const response = await fetch(`${url}/summarize`, json({ text: texts[0], sentences: 2 }));
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toContain("text/plain");
    expectSummary(await response.text(), texts[0]);
  });

  it("sums up many as a task", async () => {
    const batch = `${url}/summarize_batch`;
    const response = await result(batch, await submit(batch, json({ texts, sentences: 2 })));
    const summaries = (await response.json()) as string[];
    expect(summaries).toHaveLength(3);
    for (const [i, summary] of summaries.entries()) {
      expectSummary(summary, texts[i]);
    }
  });

  it("names the arguments that do not fit", async () => {
    const response = await fetch(`${url}/summarize`, json({ text: "", sentences: 0 }));
    expect(response.status).toBe(400);
    const text = await response.text();
    expect(text).toMatch(/"field":"text"/);
    expect(text).toMatch(/"field":"sentences"/);
  });
});
