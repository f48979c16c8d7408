/** `npm start` on a folder of its own, and the calls that people make to its examples. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { Inspector } from "./inspector.ts";

/** The token of an operator's Prometheus, with which the platform is started. */
const METRICS_TOKEN = "of-the-operator";

export class ExamplePlatform implements AsyncDisposable {
  readonly url: string;
  /** Of the person who set it up, you@acme.example. */
  readonly password: string;
  /** A token that may call the digits. */
  readonly #caller: string;
  /** A token that may deploy. */
  readonly #developer: string;
  readonly inspector: Inspector;
  readonly #process: ChildProcess;
  readonly #texts = read("summarizer/articles").map(([, content]) => content.toString());
  readonly #images = read("digits/images").filter(([name]) => name.endsWith(".png"));

  private constructor(
    process: ChildProcess,
    { said, data }: { readonly said: string; readonly data: string },
    inspector: Inspector,
  ) {
    const [, url = ""] = /Tessera runs on (\S+)/.exec(said) ?? [];
    const [, password = ""] = /password +(\w{20}) /.exec(said) ?? [];
    if (url === "" || password === "") {
      throw new Error(`npm start did not say how to use it:\n${said}`);
    }
    this.url = url;
    this.password = password;
    this.#caller = readFileSync(join(data, "digits.token"), "utf8");
    this.#developer = readFileSync(join(data, "npm-start.token"), "utf8");
    this.inspector = inspector;
    this.#process = process;
  }

  /** On a free port; resolves once both examples are deployed. */
  static async start(data: string): Promise<ExamplePlatform> {
    const path = fileURLToPath(new URL("start.ts", import.meta.url));
    const args = ["--inspect=127.0.0.1:0", path, "--port", "0", "--data", data];
    const child = spawn(process.execPath, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...process.env,
        TESSERA_DRAIN_DELAY: "0s",
        TESSERA_LOG_LEVEL: "warn",
        TESSERA_METRICS_TOKEN: METRICS_TOKEN,
      },
    });
    const inspector = new Promise<Inspector>((resolve) => {
      createInterface(child.stderr).on("line", (line) => {
        const [, address] = /^Debugger listening on (ws:\S+)/.exec(line) ?? [];
        if (address !== undefined) {
          resolve(new Inspector(address));
        } else if (!/^(?:Debugger |For help, see: )/.test(line)) {
          process.stderr.write(`${line}\n`);
        }
      });
    });
    let said = "";
    const output = child.stdout.setEncoding("utf8");
    for await (const chunk of output.iterator({ destroyOnReturn: false })) {
      said += chunk;
      if (said.includes("Ctrl-C stops")) {
        break;
      }
    }
    output.resume();
    return new ExamplePlatform(child, { said, data }, await inspector);
  }

  /** The text of an article; one of the few there are. */
  text(number: number): string {
    return this.#texts[number % this.#texts.length] ?? "";
  }

  /** `count` articles, as `summarize_batch` takes them. */
  texts(count: number): string[] {
    return Array.from({ length: count }, (_, number) => this.text(number));
  }

  /** Calls an endpoint of the summarizer with JSON, or asks about its tasks without. */
  summarizer(path: string, body?: object, init: RequestInit = {}): Promise<Response> {
    return fetch(this.url + path, {
      ...(body && { method: "POST", body: JSON.stringify(body) }),
      ...init,
      headers: {
        "tessera-deployment": "acme/summarizer",
        ...(body && { "content-type": "application/json" }),
        ...init.headers,
      },
    });
  }

  /** Submits `count` articles; answers the id of the task. */
  async submitBatch(count: number, query = ""): Promise<string> {
    const body = { texts: this.texts(count), sentences: 2 };
    const answer = await this.summarizer(`/summarize_batch/submit${query}`, body);
    const { task_id } = (await answer.json()) as { task_id: string };
    return task_id;
  }

  /** Has a digit of a picture recognized. */
  classify(number: number): Promise<Response> {
    const [name, content] = this.#images[number % this.#images.length] ?? ["", Buffer.alloc(0)];
    const form = new FormData();
    form.set("image", new File([content], name, { type: "image/png" }));
    return this.asked("/classify", {
      method: "POST",
      headers: { authorization: `Bearer ${this.#caller}`, "tessera-deployment": "acme/digits" },
      body: form,
    });
  }

  /** Asks with the token of a developer. */
  asked(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { authorization: `Bearer ${this.#developer}`, ...init.headers };
    return fetch(this.url + path, { ...init, headers });
  }

  /** Signs the person in who set it up. */
  async signIn(page: Page): Promise<void> {
    await page.goto(`${this.url}/sign-in`);
    await page.getByLabel("E-mail address").fill("you@acme.example");
    await page.getByLabel("Password").fill(this.password);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL(({ pathname }) => pathname.startsWith("/o/"));
  }

  /** The variables that log the command line in. */
  developerVariables(): Record<string, string> {
    return { SERVICE_CLOUD_API_ENDPOINT: this.url, SERVICE_CLOUD_API_KEY: this.#developer };
  }

  /** Its metrics in Prometheus's format. */
  async metrics(): Promise<string> {
    const headers = { authorization: `Bearer ${METRICS_TOKEN}` };
    return (await fetch(`${this.url}/metrics`, { headers })).text();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const exited = once(this.#process, "exit");
      this.#process.kill("SIGTERM");
      await exited;
    }
  }
}

/** The files of an example. */
function read(name: string): (readonly [name: string, content: Buffer<ArrayBuffer>])[] {
  const folder = fileURLToPath(new URL(`../examples/${name}/`, import.meta.url));
  return readdirSync(folder).map((file) => {
    const path = join(folder, file);
    return [basename(path), readFileSync(path)];
  });
}
