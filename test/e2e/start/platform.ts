/** The platform in this process, on a folder of its own, and what people's browsers and programs do. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { openAdministration } from "../../../src/app/operate/open.ts";
import { type StartedPlatform, startPlatform } from "../../../src/app/start.ts";
import { readDataConfig, readStartConfig, type StartConfig } from "../../../src/config/start.ts";

export const PASSWORD = "a long enough password";

/** A folder that is removed in the end. */
export class Folder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "tessera-start-"));

  /** Where the platform keeps its data. */
  get data(): string {
    return join(this.path, "data");
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

export interface PlatformOptions {
  /** Default: a file in the folder. */
  readonly database?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Limits that no setting changes. */
  readonly config?: Partial<StartConfig>;
}

/** Starts a node on a free port, quiet, with short times. */
export async function start(folder: Folder, options: PlatformOptions = {}): Promise<Platform> {
  const { database, env = {} } = options;
  const { config, secrets } = readStartConfig(
    { port: "0", data: folder.data, logLevel: "silent", drainTime: "300ms" },
    {
      PATH: process.env.PATH,
      ...(database !== undefined && { DATABASE_URL: database }),
      ...env,
    },
  );
  return new Platform(await startPlatform({ ...config, ...options.config }, secrets));
}

/** What `tessera admin` works with, on the same data. */
export function administration(folder: Folder, { database, env = {} }: PlatformOptions = {}) {
  const { config, secrets } = readDataConfig(
    { data: folder.data },
    { ...(database !== undefined && { DATABASE_URL: database }), ...env },
  );
  return openAdministration(config, secrets, { create: false });
}

/** What came back, with its JSON. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly json: Record<string, unknown>;
}

export class Platform implements AsyncDisposable {
  readonly started: StartedPlatform;
  readonly url: string;

  constructor(started: StartedPlatform) {
    this.started = started;
    this.url = `http://127.0.0.1:${started.port}`;
  }

  get setupCode(): string {
    return this.started.setupCode ?? "";
  }

  /** GET without a body, POST with one. */
  async call(path: string, body?: object, headers: Record<string, string> = {}): Promise<Answer> {
    const res = await fetch(this.url + path, {
      redirect: "manual",
      headers: { ...(body && { "content-type": "application/json" }), ...headers },
      ...(body && { method: "POST", body: JSON.stringify(body) }),
    });
    const text = await res.text();
    const isJson = res.headers.get("content-type")?.startsWith("application/json");
    return { status: res.status, headers: res.headers, json: isJson ? JSON.parse(text) : {} };
  }

  /** Sets the platform up; answers the cookie of the admin's session. */
  async setUp(email = "ada@example.com"): Promise<Record<string, string>> {
    const answer = await this.call("/api/v1/auth:setUp", {
      setup_code: this.setupCode,
      organization: "acme",
      email,
      password: PASSWORD,
    });
    expect(answer.status, JSON.stringify(answer.json)).toBe(200);
    return cookieOf(answer);
  }

  async signIn(email: string, password = PASSWORD): Promise<Answer> {
    return this.call("/api/v1/auth:signIn", { email, password });
  }

  /** Makes a token; answers its id and its value. */
  async createToken(
    cookie: Record<string, string>,
    fields: object = {},
  ): Promise<{ readonly id: string; readonly value: string }> {
    const answer = await this.call(
      "/api/v1/tokens",
      {
        name: "of a test",
        access: ["developer_operations"],
        expires_at: new Date(Date.now() + 3_600_000).toISOString(),
        ...fields,
      },
      cookie,
    );
    expect(answer.status, JSON.stringify(answer.json)).toBe(200);
    const { token, value } = answer.json as { token: { token_id: string }; value: string };
    return { id: token.token_id, value };
  }

  /** The status of asking who one is. */
  async whoIs(headers: Record<string, string>): Promise<number> {
    return (await this.call("/api/v1/me", undefined, headers)).status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.started.stop();
  }
}

export function bearer(value: string): Record<string, string> {
  return { authorization: `Bearer ${value}` };
}

/** The session that an answer gives, as a browser sends it back. */
export function cookieOf({ headers }: Pick<Answer, "headers">): Record<string, string> {
  const pairs = headers.getSetCookie().map((cookie) => cookie.split(";", 1)[0] ?? "");
  return { cookie: pairs.find((pair) => /tessera_session=./.test(pair)) ?? "" };
}
