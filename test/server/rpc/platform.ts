/**
 * A platform's server on real storage, with a clock that a test moves. All
 * that it logs and every error that it answers is kept, and so is every
 * secret that it gave away, so that one can be searched for the other.
 */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DescMethod } from "@bufbuild/protobuf";
import { pino } from "pino";
import { platformServices } from "../../../src/app/platform-services.ts";
import { announceChanges, ChangeFeed } from "../../../src/auth/change-feed.ts";
import { FailureLimiter } from "../../../src/auth/failures.ts";
import { KeyRing } from "../../../src/auth/keys.ts";
import { UseRecorder } from "../../../src/auth/token-uses.ts";
import { Verifier } from "../../../src/auth/verifier.ts";
import { problem } from "../../../src/errors.ts";
import { Federation } from "../../../src/metrics/federation.ts";
import { KeptHistory } from "../../../src/metrics/history/kept.ts";
import { Metrics } from "../../../src/metrics/metrics.ts";
import type { Mailer } from "../../../src/server/mail/mailer.ts";
import { Readiness } from "../../../src/server/readiness.ts";
import { createServer } from "../../../src/server/server.ts";
import type { Accounts } from "../../../src/storage/accounts/accounts.ts";
import { FolderBlobStore } from "../../../src/storage/blobs/folder.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { createIdSource } from "../../../src/tasks/id.ts";

const PLATFORM_DOMAIN = "tessera.example";

export interface PlatformAnswer {
  readonly status: number;
  /** `ok`, or the reason of the error. */
  readonly outcome: string;
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes, looked into by tests
  readonly body: any;
  readonly headers: Headers;
  readonly text: string;
}

export interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Where the call seems to come from. Default: somewhere else each time. */
  readonly address?: string;
}

/** Nothing runs on this node. */
function notHosted(): never {
  throw problem("DEPLOYMENT_STOPPED", "the deployment is stopped");
}

/** A source of models that has nothing. */
const NO_SOURCE = {
  takes: () => true,
  pin: () => Promise.reject(problem("SOURCE_REFUSED", "there is no such model")),
};

/** Where the calls of a test come from; each has a limit of failures of its own. */
let addresses = 0;

export class TestPlatform implements AsyncDisposable {
  readonly origin: string;
  readonly storage: Storage;
  readonly accounts: Accounts;
  readonly keys: KeyRing;
  readonly newId: () => string;
  readonly secrets = new Set<string>();
  readonly said: string[] = [];
  readonly #resources: AsyncDisposableStack;
  readonly #clock: { offsetMs: number };

  /** @param mailer default: the platform sends no mail */
  static async start(storage: Storage, mailer?: Mailer): Promise<TestPlatform> {
    const said: string[] = [];
    const clock = { offsetMs: 0 };
    const log = pino({ level: "debug" }, { write: (line) => void said.push(line) });
    const resources = new AsyncDisposableStack();
    resources.use(storage);
    const now = () => Date.now() + clock.offsetMs;
    const newId = createIdSource(now);
    const keys = new KeyRing(() => ({
      digest: [{ id: "d1", key: Buffer.alloc(32, 1), created: "" }],
      seal: [{ id: "s1", key: Buffer.alloc(32, 2), created: "" }],
    }));
    const { accounts } = storage;
    const changes = resources.use(new ChangeFeed({ accounts, notifier: undefined, log }));
    await changes.start();
    const uses = resources.use(new UseRecorder({ accounts, log, writeAfterMs: 20 }));
    const failures = new FailureLimiter();
    const verifier = resources.use(
      new Verifier({ accounts, keys, changes, uses, failures, log, now, secureCookies: true }),
    );
    const folder = mkdtempSync(join(tmpdir(), "tessera-rpc-"));
    resources.defer(() => rmSync(folder, { recursive: true, force: true }));
    const blobs = resources.use(new FolderBlobStore(folder));
    await blobs.start();
    const readiness = new Readiness();
    readiness.set(true);
    const shutdown = new AbortController();
    const { app, listener } = await createServer({
      services: platformServices(
        {
          accounts: announceChanges(accounts, changes),
          hosting: announceChanges(storage.hosting, changes),
          tasks: storage,
          directory: { find: notHosted },
          changes,
          mailer,
          artifactOf: () => undefined,
          blobs,
          federation: new Federation({ metrics: new Metrics({ node: "n1", now }), now }),
          history: new KeptHistory(storage.metrics),
          keys,
          failures: new FailureLimiter(),
          deviceLogins: new FailureLimiter(),
          log,
          now,
          newId,
        },
        {
          sessionLifetimeMs: 14 * 24 * 3_600_000,
          publicUrl: "https://tessera.example",
          secureCookies: true,
          urlOf: ({ name, organization }) => `https://${name}.${organization}.apps.tessera.example`,
          allowsNativeCode: false,
          sandbox: "kernel",
          ceilings: {
            ...{ workers: 100, memoryMib: 65_536, cpu: 64, processes: 256, deployments: 1_000 },
            retentionMs: 365 * 86_400_000,
            storageBytes: 20 * 1024 ** 3,
          },
          allowedEgress: ["127.0.0.1"],
          modelSources: [NO_SOURCE],
          silenceMs: 15_000,
          organizationCreators: "anyone",
        },
      ),
      authenticate: verifier.authenticate,
      standalone: false,
      sameSiteOnly: false,
      platformDomain: PLATFORM_DOMAIN,
      trustProxy: true,
      plugins: [],
      health: readiness,
      log,
      bodyBudgetBytes: 100_000_000,
      accessLog: "debug",
      shutdownSignal: shutdown.signal,
    });
    resources.defer(async () => {
      shutdown.abort();
      await listener.close(100);
      await app.close();
    });
    listener.server.listen(0, "127.0.0.1");
    await once(listener.server, "listening");
    const { port } = listener.server.address() as AddressInfo;
    return new TestPlatform({ storage, accounts, keys, newId, said, clock, resources, port });
  }

  private constructor(parts: {
    readonly storage: Storage;
    readonly accounts: Accounts;
    readonly keys: KeyRing;
    readonly newId: () => string;
    readonly said: string[];
    readonly clock: { offsetMs: number };
    readonly resources: AsyncDisposableStack;
    readonly port: number;
  }) {
    this.storage = parts.storage;
    this.accounts = parts.accounts;
    this.keys = parts.keys;
    this.newId = parts.newId;
    this.said = parts.said;
    this.#clock = parts.clock;
    this.#resources = parts.resources;
    this.origin = `http://127.0.0.1:${parts.port}`;
  }

  now(): number {
    return Date.now() + this.#clock.offsetMs;
  }

  /** Lets time pass, for everything but the verifier's memory. */
  advance(ms: number): void {
    this.#clock.offsetMs += ms;
  }

  /** What comes with a change that a test makes past the API. */
  deed() {
    return {
      by: { name: "operator", id: "", address: "" },
      nowMs: this.now(),
      eventId: this.newId(),
    };
  }

  /** Calls a method as Connect JSON; of a stream, `message` is the only one that is sent. */
  call(method: DescMethod, message: unknown, options?: CallOptions): Promise<PlatformAnswer> {
    const path = `/${method.parent.typeName}/${method.name}`;
    return method.methodKind === "unary"
      ? this.rest("POST", path, message, options)
      : this.#stream(path, message, options);
  }

  /** Sends a request with a JSON body, or none. */
  async rest(
    method: string,
    path: string,
    message?: unknown,
    { headers, address }: CallOptions = {},
  ): Promise<PlatformAnswer> {
    this.#keepSent(message);
    const from = address ?? nextAddress();
    const body = message === undefined ? null : JSON.stringify(message);
    const res = await fetch(this.origin + path, {
      method,
      body,
      headers: {
        ...(body !== null && { "content-type": "application/json" }),
        "x-forwarded-for": from,
        ...headers,
      },
    });
    const text = await res.text();
    const json = text === "" ? {} : JSON.parse(text);
    if (res.status >= 400) {
      this.said.push(text);
    } else {
      this.#keepSecrets(json, res.headers);
    }
    const details: { readonly type: string; readonly debug?: { readonly reason?: string } }[] =
      json.details ?? [];
    const info = details.find(({ type }) => type === "google.rpc.ErrorInfo");
    const outcome = res.status < 400 ? "ok" : (info?.debug?.reason ?? `status ${res.status}`);
    return { status: res.status, outcome, body: json, headers: res.headers, text };
  }

  /** The body is what ends the stream: an error, or nothing. */
  async #stream(
    path: string,
    message: unknown,
    { headers, address = nextAddress() }: CallOptions = {},
  ): Promise<PlatformAnswer> {
    this.#keepSent(message);
    const res = await fetch(this.origin + path, {
      method: "POST",
      body: enveloped(JSON.stringify(message)),
      headers: {
        "content-type": "application/connect+json",
        "x-forwarded-for": address,
        ...headers,
      },
    });
    const text = lastEnvelope(Buffer.from(await res.arrayBuffer()));
    const { error: body } = JSON.parse(text);
    if (body === undefined) {
      return { status: 200, outcome: "ok", body: {}, headers: res.headers, text };
    }
    this.said.push(text);
    const [info] = body.details ?? [];
    const outcome = info?.debug?.reason ?? body.code;
    return { status: res.status, outcome, body, headers: res.headers, text };
  }

  #keepSent(message: unknown): void {
    for (const [name, value] of Object.entries(message ?? {})) {
      if (/password|verifier|code$/i.test(name) && typeof value === "string" && value.length > 8) {
        this.secrets.add(value);
      }
    }
  }

  #keepSecrets(json: Record<string, unknown>, headers: Headers): void {
    for (const name of ["value", "deviceCode", "device_code", "userCode", "user_code"]) {
      if (typeof json[name] === "string") {
        this.secrets.add(json[name]);
      }
    }
    for (const cookie of headers.getSetCookie()) {
      const value = cookie.split(/[=;]/)[1] ?? "";
      if (value !== "") {
        this.secrets.add(value);
      }
    }
  }

  /** Secrets in what was logged, answered as errors, or handed to this function. */
  leaks(...texts: readonly string[]): string[] {
    const all = [...this.said, ...texts].join("\n");
    return [...this.secrets].filter((secret) => all.includes(secret));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }
}

function nextAddress(): string {
  addresses += 1;
  return `10.${addresses >> 16}.${(addresses >> 8) & 255}.${addresses & 255}`;
}

/** A message as Connect streams carry it: a byte of flags, its length, its text. */
function enveloped(text: string): Uint8Array<ArrayBuffer> {
  const data = Buffer.from(text);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(data.length, 1);
  return new Uint8Array([...head, ...data]);
}

function lastEnvelope(body: Buffer): string {
  let rest = body;
  for (;;) {
    const end = 5 + rest.readUInt32BE(1);
    if (end >= rest.length) {
      return rest.subarray(5, end).toString();
    }
    rest = rest.subarray(end);
  }
}

/** The fields that an error names. */
export function violatedFields({ body }: PlatformAnswer): string[] {
  const details: {
    readonly debug?: { readonly fieldViolations?: readonly { readonly field: string }[] };
  }[] = body.details ?? [];
  return details.flatMap(({ debug }) => (debug?.fieldViolations ?? []).map(({ field }) => field));
}
