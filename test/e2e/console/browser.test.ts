import { readFile } from "node:fs/promises";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { axeFinds } from "./console-browser.ts";
import { type Deployment, startDeployment } from "./deployment.ts";
import { gradientPng } from "./pixels.ts";
import { readByShell } from "./shell.ts";

const skipped = leftOut(chromiumMissing);

describe.skipIf(skipped)(`the page in a browser${skipped}`, { timeout: 30_000 }, () => {
  let browser: Browser;
  let deployment: Deployment;
  let page: Page;
  let complaints: string[];

  const open = async (hash = "", options: Parameters<Browser["newPage"]>[0] = {}) => {
    page = await browser.newPage(options);
    page.setDefaultTimeout(5000);
    page.on("pageerror", (err) => complaints.push(err.message));
    page.on("console", (message) => {
      if (message.text().includes("Content Security Policy")) {
        complaints.push(message.text());
      }
    });
    page.on("request", (request) => {
      if (!/^(blob:|data:)/.test(request.url()) && !request.url().startsWith(deployment.url)) {
        complaints.push(`request to ${request.url()}`);
      }
    });
    await page.goto(`${deployment.url}/${hash}`);
  };
  const click = (name: string) => page.getByRole("button", { name, exact: true }).click();
  const pieces = () => page.getByRole("region", { name: "Pieces" });
  const see = (text: string | RegExp) =>
    page.getByText(text).filter({ visible: true }).first().waitFor();
  const submit = async (endpoint: string) => {
    await open(`#/${endpoint}`);
    await click("Submit");
    await page.locator(".timeline .now", { hasText: "queued" }).waitFor();
    return deployment.lastTask();
  };

  beforeAll(async () => {
    browser = await sharedChromium();
  });
  afterAll(closeContexts);
  beforeEach(async () => {
    complaints = [];
    deployment = await startDeployment();
  });
  afterEach(async () => {
    await page.close();
    await deployment[Symbol.asyncDispose]();
    expect(complaints).toEqual([]);
  });

  it("calls an endpoint with what was entered, and shows the text it answers", async () => {
    await open();
    const result = page.getByRole("region", { name: "Result" });
    await result.getByText("The result appears here.").waitFor();
    await page.getByLabel("text", { exact: true }).fill("Long ago.");
    await page.getByLabel("sentences").fill("2");
    await page.getByLabel("polite").selectOption("true");
    await page.getByLabel("shout").check();
    await page.getByLabel("options").fill('{"seed": 7}');
    await click("Call");
    await see("In short <b>: Long ago.");
    expect(await page.locator(".output-head").textContent()).toMatch(/^Resultansweredin \d+ m?s$/);
    expect(JSON.parse(deployment.received().body)).toEqual({
      text: "Long ago.",
      sentences: 2,
      style: "plain",
      polite: true,
      shout: true,
      options: { seed: 7 },
    });
  });

  it("says beside the field what is wrong with it, and sends nothing", async () => {
    await open();
    await page.getByLabel("text", { exact: true }).fill("");
    await page.getByLabel("sentences").fill("50");
    await page.getByLabel("options").fill("{}");
    await click("Call");
    await see("is required");
    await see("must be at most 20");
    await see("'seed' is missing");
    expect(
      await page.getByLabel("text", { exact: true }).evaluate((one) => one.matches(":focus")),
    ).toBe(true);
    await page.getByLabel("options").fill("{seed}");
    await click("Call");
    await see(/is not JSON/);
    expect(deployment.received().body).toBe("");
  });

  it("shows the server's violations beside their fields, the others with the error", async () => {
    await open();
    await page.getByLabel("text", { exact: true }).fill("forbidden");
    await click("Call");
    const field = page.locator(".field").filter({ has: page.getByLabel("text", { exact: true }) });
    await field.locator(".field-error", { hasText: "must not contain" }).waitFor();
    await page.getByRole("alert").getByText("too much at once").waitFor();
    await see("ARGUMENTS_INVALID");
    expect(await page.locator(".output-head").textContent()).toMatch(/^Resultfailedin \d+ m?s$/);
    await see("HTTP 400");
  });

  it("takes arguments as JSON, carries them over, and does not lose what it cannot read", async () => {
    await open();
    await page.getByLabel("text", { exact: true }).fill("Carried over.");
    await click("JSON");
    const editor = page.getByLabel("Arguments as JSON");
    expect(JSON.parse(await editor.inputValue())).toMatchObject({
      text: "Carried over.",
      sentences: 3,
    });
    await editor.fill("{broken");
    await click("Form");
    await see(/is not JSON/);
    expect(await editor.inputValue()).toBe("{broken");
    await editor.fill('{"text": "From JSON."}');
    await click("Form");
    expect(await page.getByLabel("text", { exact: true }).inputValue()).toBe("From JSON.");
  });

  it("sends files in a form, and shows JSON answers in colour", async () => {
    await open("#/classify");
    await click("Call");
    await see("is required");
    const file = { name: "seven.png", mimeType: "image/png", buffer: gradientPng() };
    await page.locator("input[type=file]").setInputFiles(file);
    await see("seven.png");
    await click("Call");
    await page.locator(".json-literal", { hasText: "0.982" }).waitFor();
    const { contentType, body } = deployment.received();
    expect(contentType).toContain("multipart/form-data");
    expect(body).toContain('name="image"; filename="seven.png"');
    expect(body).toContain("Content-Type: image/png");
    expect(body).toMatch(/name="labels"\r\n\r\n\["a"\]/);
  });

  it.each(["image/svg+xml", "application/xhtml+xml"])(
    "keeps a result of %s where it cannot run as a page of its own",
    async (type) => {
      await open();
      await page.evaluate(`(() => {
        window.madeTypes = [];
        const make = URL.createObjectURL;
        URL.createObjectURL = (blob) => (window.madeTypes.push(blob.type), make(blob));
      })()`);
      await page.getByLabel("text", { exact: true }).fill(type);
      await click("Call");
      await page.getByRole("link", { name: /^Download / }).waitFor();
      expect(await page.evaluate("window.madeTypes")).toEqual(["application/octet-stream"]);
      const picture = page.locator(".output img");
      expect(await picture.count()).toBe(type.startsWith("image") ? 1 : 0);
      if (type.startsWith("image")) {
        const width = "document.querySelector('.output img')?.naturalWidth";
        await expect.poll(() => page.evaluate(width)).toBe(20);
      }
    },
  );

  it("shows the pieces of a streamed result as they come, to its end", async () => {
    await open("#/tell");
    await click("Call");
    await pieces().waitFor();
    deployment.tell('id: 1\ndata: "Once upon"\n\n');
    await see("Once upon");
    await page.locator(".output-head").getByText("running").waitFor();
    deployment.tell('id: 2\ndata: " a time\\n<b>"\n\n');
    await see("Once upon a time <b>");
    deployment.tell("event: end\ndata: {}\n\n");
    await see(/2 pieces in /);
    expect(await pieces().textContent()).toBe("Once upon a time\n<b>");
  });

  it("shows what came before a streamed result failed, and why it did", async () => {
    await open("#/tell");
    await click("Call");
    await pieces().waitFor();
    deployment.tell('id: 1\ndata: "Once"\n\n');
    const error = { code: "internal", message: "no more", details: [] };
    deployment.tell(`event: error\ndata: ${JSON.stringify(error)}\n\n`);
    await see("no more");
    await see("Once");
    await see(/1 piece in /);
  });

  it("follows a task through its states, progress and log to its result", async () => {
    const task = await submit("summarize_batch");
    deployment.move(task, { state: { status: "running" } });
    deployment.move(task, { progress: { fraction: 0.25, message: "a quarter" } });
    deployment.move(task, { log: { level: "warn", message: "slow", fields: { seconds: 9 } } });
    await see("25 %");
    await see("a quarter");
    await see('{"seconds":9}');
    deployment.move(task, { state: { status: "success" } });
    await see('"The second summary."');
    expect(await page.locator(".timeline .status").allTextContents()).toEqual([
      "queued",
      "running",
      "success",
    ]);
  });

  it("takes up a broken event stream where it was", async () => {
    const task = await submit("summarize_batch");
    deployment.move(task, { log: { level: "info", message: "before" } });
    await see("before");
    deployment.breakStreams();
    await see("Connection lost");
    deployment.move(task, { log: { level: "info", message: "after" } });
    await page.locator(".log-line", { hasText: "after" }).waitFor();
    expect(await page.locator(".log-line").count()).toBe(2);
  });

  it("shows a picture that a task returns, and offers it under its name", async () => {
    const task = await submit("contact_sheet");
    deployment.move(task, { state: { status: "success" } });
    // Not by waitForFunction, which evaluates within the page, whose policy forbids that.
    const width = "document.querySelector('.output img')?.naturalWidth";
    await expect.poll(() => page.evaluate(width)).toBe(240);
    const link = page.getByRole("link", { name: "Download Result" });
    expect(await link.getAttribute("download")).toBe("sheet.png");
  });

  it("shows why a task failed, and runs it again as a new task", async () => {
    const first = await submit("broken");
    deployment.move(first, { state: { status: "failure" } });
    await see("cannot divide by zero");
    await see("TASK_FAILED");
    await page.locator(".output-head").getByText("failure").waitFor();
    await click("Retry");
    await page.waitForURL((url) => !url.hash.includes(first.id));
    await page.locator(".timeline .now", { hasText: "queued" }).waitFor();
    expect(page.url()).toContain(deployment.lastTask().id);
    expect(await page.locator(".recent li").count()).toBe(2);
    await page.getByRole("link", { name: "an earlier task" }).click();
    await see("cannot divide by zero");
    expect(page.url()).toContain(first.id);
  });

  it("cancels a task that waits, and aborts one that runs", async () => {
    await submit("broken");
    await click("Cancel");
    await see("Cancelled: there is no result.");
    await page.close();
    const task = await submit("broken");
    deployment.move(task, { state: { status: "running" } });
    await click("Abort");
    await see("Cancelled: there is no result.");
  });

  it("keeps the tasks of the session over a reload", async () => {
    const task = await submit("summarize_batch");
    await page.reload();
    await see(task.id.slice(-12));
    await page.locator(".recent a", { hasText: "queued" }).waitFor();
  });

  it("asks for a token when the server does, and sends it from then on", async () => {
    await deployment[Symbol.asyncDispose]();
    deployment = await startDeployment({ token: "secret" });
    await open();
    await page.getByLabel("Token", { exact: true }).fill("secret");
    await click("Save");
    await page.getByLabel("text", { exact: true }).fill("Protected.");
    await click("Call");
    await see("In short <b>: Protected.");
    await page.goto(`${deployment.url}/#/broken`);
    await click("Submit");
    await page.locator(".timeline .now", { hasText: "queued" }).waitFor();
    await see('-H "authorization: Bearer $TESSERA_TOKEN"');
  });

  it("writes commands that a shell reads as the form's values", async () => {
    await open();
    await page.getByLabel("text", { exact: true }).fill("it's $HOME");
    const command = page.locator(".snippets code");
    const words = await readByShell("curl", (await command.textContent()) ?? "");
    expect(words.slice(0, 4)).toEqual([
      `${deployment.url}/summarize`,
      "-H",
      "content-type: application/json",
      "-d",
    ]);
    expect(JSON.parse(words[4] ?? "").text).toBe("it's $HOME");
    await click("grpcurl");
    const [plain, , message, host, method] = await readByShell(
      "grpcurl",
      (await command.textContent()) ?? "",
    );
    expect([plain, host]).toEqual(["-plaintext", new URL(deployment.url).host]);
    expect(method).toBe("tessera.v1.EndpointService/CallEndpoint");
    expect(JSON.parse(message ?? "")).toMatchObject({
      endpoint: "summarize",
      arguments: { text: "it's $HOME", sentences: 3 },
    });
  });

  it("writes commands that show a streamed result as it comes", async () => {
    await open("#/tell");
    const command = page.locator(".snippets code");
    await command.waitFor();
    const curl = await readByShell("curl", (await command.textContent()) ?? "");
    expect(curl.slice(0, 2)).toEqual(["-N", `${deployment.url}/tell`]);
    await click("grpcurl");
    const grpcurl = await readByShell("grpcurl", (await command.textContent()) ?? "");
    expect(grpcurl).toContain("tessera.v1.EndpointService/StreamEndpoint");
  });

  it("fills a form in with an example, which is sent as it is", async () => {
    await open("#/summarize_batch");
    await click("Submit");
    await page.locator(".timeline .now", { hasText: "queued" }).waitFor();
    const texts = ["The fox is quick. The dog is lazy."];
    expect(JSON.parse(String(deployment.lastTask().body))).toEqual({ texts, sentences: 3 });
  });

  it("writes commands that can be run before anything is filled in", async () => {
    await open();
    const command = page.locator(".snippets code");
    await command.waitFor();
    const words = await readByShell("curl", (await command.textContent()) ?? "");
    expect(JSON.parse(words[4] ?? "").text).toMatch(/./);
  });

  it("fits a phone without scrolling sideways", async () => {
    await open("", { viewport: { width: 360, height: 740 } });
    await see("summarize_batch");
    const overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    expect(await page.evaluate(overflow)).toBe(0);
  });

  it("can be used by keyboard alone", async () => {
    await open();
    await see("summarize_batch");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    expect(await page.evaluate("document.activeElement.id")).toBe("main");
    await page.getByLabel("text", { exact: true }).focus();
    await page.keyboard.type("Typed.");
    await page.keyboard.press("Control+Enter");
    await see("In short <b>: Typed.");
  });

  it("gives every control a name", async () => {
    await open("#/classify");
    await see("Choose a file");
    const nameless =
      "[...document.querySelectorAll('input, select, textarea')]" +
      ".filter((control) => control.labels.length !== 1).map((control) => control.outerHTML)";
    expect(await page.evaluate(nameless)).toEqual([]);
  });

  it.each(["light", "dark"] as const)(
    "gives every text enough contrast (%s)",
    async (colorScheme) => {
      const contrast = await readFile(new URL("./contrast.js", import.meta.url), "utf8");
      await open("#/classify", { colorScheme });
      const file = { name: "seven.png", mimeType: "image/png", buffer: gradientPng() };
      await page.locator("input[type=file]").setInputFiles(file);
      await click("Call");
      await see("0.982");
      expect(await page.evaluate(contrast)).toEqual([]);
      await page.goto(`${deployment.url}/#/broken`);
      await click("Submit");
      await page.locator(".timeline .now", { hasText: "queued" }).waitFor();
      const task = deployment.lastTask();
      for (const level of ["debug", "info", "warn", "error"]) {
        deployment.move(task, { log: { level, message: level, fields: { a: 1 } } });
      }
      deployment.move(task, { progress: { fraction: 0.5, message: "half way" } });
      deployment.move(task, { state: { status: "failure" } });
      await see("cannot divide by zero");
      expect(await page.evaluate(contrast)).toEqual([]);
      expect(await axeFinds(page)).toEqual([]);
    },
  );
});
