/** The client in a browser, bundled as programs for browsers bundle it. */
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { createClient, createTesseraClient } from "../../../src/client/browser.ts";
import { leftOut } from "../../needed.ts";
import { chromiumMissing, launchChromium } from "../console/chromium.ts";
import { type Cut, CuttingProxy } from "./cutting-proxy.ts";
import { type Clients, type ServedClients, serveClients } from "./served.ts";

const ENTRY = fileURLToPath(new URL("../../../src/client/browser.ts", import.meta.url));
const skipped = leftOut(chromiumMissing);

/** As a script that leaves it in a global. */
async function bundle() {
  return await build({
    entryPoints: [ENTRY],
    bundle: true,
    write: false,
    metafile: true,
    platform: "browser",
    format: "iife",
    globalName: "tessera",
    footer: { js: "globalThis.tessera = tessera;" },
    logLevel: "silent",
  });
}

declare const location: { readonly origin: string };
/** What the bundle leaves in the page. */
declare const tessera: {
  createClient: typeof createClient;
  createTesseraClient: typeof createTesseraClient;
};

it("the client for browsers takes nothing of Node's, and all that the other one exports", async () => {
  const { metafile } = await bundle();
  const imported = Object.values(metafile.inputs).flatMap(({ imports }) => imports);
  expect(imported.filter(({ path, external }) => external || path.startsWith("node:"))).toEqual([]);
  expect(Object.keys(metafile.inputs).filter((path) => path.includes("connect-node"))).toEqual([]);
  const node = await import("../../../src/client/index.ts");
  const browser = await import("../../../src/client/browser.ts");
  expect(Object.keys(browser)).toEqual(Object.keys(node));
});

describe.skipIf(skipped)(`in a browser${skipped}`, () => {
  let served: ServedClients;
  let browser: Browser;
  let page: Page;
  let script: string;
  beforeAll(async () => {
    served = await serveClients();
    browser = await launchChromium();
    script = (await bundle()).outputFiles[0]?.text ?? "";
    page = await openPage(served.url);
  });
  afterAll(async () => {
    await browser?.close();
    await served?.[Symbol.asyncDispose]();
  });

  async function openPage(url: string): Promise<Page> {
    const opened = await browser.newPage();
    await opened.goto(`${url}/livez`);
    await opened.evaluate(script);
    return opened;
  }

  it("endpoints are called, tasks are submitted, waited for, watched and retried", async () => {
    const seen = await page.evaluate(async () => {
      const client = tessera.createClient<Clients>({ url: location.origin });
      const greeting = await client.greet({ name: "Ada" });
      const task = await client.climb.submit({ steps: 3 });
      const progress: number[] = [];
      const result = await task.wait({ onProgress: ({ fraction }) => progress.push(fraction) });
      const events: string[] = [];
      for await (const event of task.watch()) {
        events.push(event.type);
      }
      const retried = await task.retry();
      const again = await retried.wait();
      return { greeting, result, progress, events, again, value: (await task.getStatus()).value };
    });
    expect(seen).toEqual({
      greeting: "Hello Ada!",
      result: 3,
      progress: [1],
      events: ["state", "state", "progress", "state"],
      again: 3,
      value: "success",
    });
  });

  it("files go in and come out, larger ones too", async () => {
    const seen = await page.evaluate(async () => {
      const client = tessera.createClient<Clients>({ url: location.origin });
      const bytes = new Uint8Array(5_000_000).fill(7);
      const document = new File([bytes], "naïve 1.bin", { type: "application/x-made" });
      const task = await client.measure_later.submit({ document, others: [new Uint8Array(3)] });
      const measured = (await task.wait()) as { document: object; others: object[] };
      const given = await task.getArguments();
      const opened = await task.openArguments({ file: 0 });
      const givenName = opened.name;
      await opened.stream.cancel();
      const painted = await client.paint({ name: "grün.png" });
      const made = await client.produce.submit({ bytes: 1_000_000 });
      await made.ended();
      const { stream, size } = await made.open();
      const reader = stream.getReader();
      let read = 0;
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        read += next.value.length;
      }
      const { name, type } = painted;
      return {
        measured,
        given,
        givenName,
        painted: { name, type, size: painted.size },
        size,
        read,
      };
    });
    expect(seen).toMatchObject({
      measured: {
        document: { name: "naïve 1.bin", type: "application/x-made", bytes: 5_000_000 },
        others: [{ bytes: 3 }],
      },
      given: {
        values: { document: 0, others: [1] },
        files: [
          {
            argument: "document",
            name: "naïve 1.bin",
            type: "application/x-made",
            size: 5_000_000,
          },
          { argument: "others", size: 3 },
        ],
      },
      givenName: "naïve 1.bin",
      painted: { name: "grün.png", type: "image/png", size: 8 },
      size: 1_000_000,
      read: 1_000_000,
    });
  });

  it("errors are told apart as in Node", async () => {
    const seen = await page.evaluate(async () => {
      const client = tessera.createClient<Clients>({ url: location.origin });
      const failure = (promise: Promise<unknown>) =>
        promise.catch((err: Error & { violations?: unknown[] }) => [err.name, err.violations]);
      return [
        await failure(client.greet({ name: "", times: 1 })),
        await failure(client.fail({ code: "error" })),
        await failure(client.tick({}, { timeout: 0 })),
        await failure(client.add.task("01890000-0000-7000-8000-000000000000").get()),
      ];
    });
    expect(seen).toEqual([
      ["InvalidArgumentsError", [expect.objectContaining({ field: "name" })]],
      ["CallFailedError", []],
      ["TimeoutError", []],
      ["TaskNotFoundError", []],
    ]);
  });

  it("a submit whose connection is cut is sent again, and leaves one task", async () => {
    const cuts: (Cut | undefined)[] = ["request", "between", "response"];
    await using proxy = await CuttingProxy.start(served.port, (head) =>
      head.startsWith("POST /add/submit") ? cuts.pop() : undefined,
    );
    const other = await openPage(proxy.url);
    const seen = await other.evaluate(async () => {
      const client = tessera.createClient<Clients>({ url: location.origin });
      const task = await client.add.submit({ numbers: [1, 2] });
      const { tasks } = tessera.createTesseraClient({ url: location.origin });
      const listed = await tasks.listTasks({ endpoint: "add" });
      return { result: await task.wait(), tasks: listed.tasks.length };
    });
    expect(seen).toEqual({ result: 3, tasks: 1 });
    expect(proxy.cuts).toBe(3);
  });

  it("pages of another origin call where the server names it, with a token, and of no other", async () => {
    const TOKEN = "a-token-for-pages";
    await using elsewhere = await serveClients();
    await using open = await serveClients({ token: TOKEN, allowedOrigins: [elsewhere.url] });
    await using closed = await serveClients({ token: TOKEN });
    const foreign = await openPage(elsewhere.url);
    const seen = await foreign.evaluate(
      async ({ url, closedUrl, token }) => {
        const client = tessera.createClient<Clients>({ url, token });
        const document = new File([new Uint8Array(300_000)], "a.bin");
        const measured = (await client.measure({ document })) as { document: { bytes: number } };
        const painted = await client.paint({ name: "grün.png" });
        const task = await client.climb.submit({ steps: 3 });
        const result = await task.wait();
        const events: string[] = [];
        for await (const event of task.watch()) {
          events.push(event.type);
        }
        const again = await (await task.retry()).wait();
        const failure = (promise: Promise<unknown>) =>
          promise.then(String, (err: Error) => [err.name, err.message]);
        const wrong = tessera.createClient<Clients>({ url, token: "another" });
        const refused = tessera.createClient<Clients>({ url: closedUrl, token, retries: 0 });
        const { tasks } = tessera.createTesseraClient({ url, token });
        return {
          bytes: measured.document.bytes,
          painted: painted.name,
          events,
          results: [result, again],
          wrong: await failure(wrong.greet({ name: "Ada" })),
          refused: await failure(refused.greet({ name: "Ada" })),
          listed: (await tasks.listTasks({ endpoint: "climb" })).tasks.length,
        };
      },
      { url: open.url, closedUrl: closed.url, token: TOKEN },
    );
    expect(seen).toEqual({
      bytes: 300_000,
      painted: "grün.png",
      events: ["state", "state", "progress", "state"],
      results: [3, 3],
      wrong: ["TokenError", expect.any(String)],
      refused: ["ConnectionLostError", expect.stringMatching(/does not let pages of http.*--cors/)],
      listed: 2,
    });
  });

  it("streams of the platform's services are read", async () => {
    const seen = await page.evaluate(async () => {
      const { tasks } = tessera.createTesseraClient({ url: location.origin });
      const { task } = await tasks.submitTask({
        endpoint: "climb",
        input: { case: "arguments", value: { steps: 3 } },
      });
      const events: (string | undefined)[] = [];
      for await (const { event } of tasks.watchTask({ taskId: task?.taskId ?? "" })) {
        events.push(event.case);
      }
      return events;
    });
    expect(seen).toEqual(["state", "state", "progress", "state"]);
  });
});
