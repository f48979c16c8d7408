/**
 * The deliverer: sends what waits in the outbox of webhooks, on every node.
 *
 * A node takes a few deliveries that are due, each for a time of its own, sends them at the same time,
 * and records what was answered. It looks again as soon as one has ended, and otherwise every half
 * second, but only while there is a webhook or a delivery: without, it asks nothing, and hears of the
 * first webhook by the change event that is written with it.
 *
 * - Delivered at least once: a node that dies before it has recorded the answer leaves its delivery
 *   due again, under the same `webhook-id`. Receivers know copies by it.
 * - A receiver that fails is tried one delivery at a time; after five failures in a row it is paused,
 *   for longer each time. What waits for it keeps its attempts.
 * - One webhook has at most eight deliveries under way here, and one organization three quarters of
 *   what the node does at a time.
 *
 * Receivers of alerts are webhooks, too: to those by mail and of Slack, what is stored as the message
 * is sent in their form (`alerts/forms.ts`).
 */
import { request } from "node:http";
import type { ChangeFeed } from "../../auth/change-feed.ts";
import { type KeyRing, webhookContext } from "../../auth/keys.ts";
import { SharedBound } from "../../collections/shared-bound.ts";
import type { Log } from "../../log/log.ts";
import type { Resolve } from "../../pool/egress/dial.ts";
import { dialUrl } from "../../pool/egress/dial-url.ts";
import { EgressPolicy } from "../../pool/egress/policy.ts";
import { EgressFailedError, EgressRefusedError } from "../../pool/egress/refusals.ts";
import type { AlertMessage } from "../../storage/hosting/alerts.ts";
import type {
  DeliveryAnswer,
  DeliveryState,
  TakenDelivery,
  WebhookStorage,
} from "../../storage/hosting/webhooks.ts";
import type { Storage } from "../../storage/storage.ts";
import { Timer } from "../../time/timer.ts";
import { version } from "../../version.ts";
import { slackBody } from "../alerts/forms.ts";
import { eventBody } from "./event.ts";
import { readSecrets, signedHeaders, type WebhookSecret } from "./signature.ts";

/** Deliveries that one node sends at a time. */
const MAX_PARALLEL_DELIVERIES = 64;
/** Of them, those of one webhook. */
const MAX_DELIVERIES_PER_WEBHOOK = 8;
/** Interval at which a node looks for deliveries that are due, while there are webhooks. */
const DELIVERY_POLL_INTERVAL_MS = 500;
/** How long a delivery is its node's; then that is taken for dead. Longer than an attempt. */
const DELIVERY_CLAIM_MS = 30_000;
/** Pauses before each next attempt; after the last one, a delivery has failed. */
const DELIVERY_RETRY_PAUSES_MS = [
  5_000, 30_000, 120_000, 600_000, 3_600_000, 21_600_000, 86_400_000,
] as const;
/** Part of a pause that is left to chance, so that what failed together does not return together. */
const MAX_RETRY_JITTER = 0.2;
/** The breaker: for how long a webhook is paused, by its failures in a row. */
const BREAKER_PAUSES_MS = [0, 0, 0, 0, 30_000, 60_000, 120_000, 300_000, 600_000] as const;
/** Answers that are kept of a delivery: one more than the retries. */
const MAX_KEPT_ANSWERS = 8;
/** How long deliveries are kept, and a receiver that is down is waited for. */
const DELIVERY_RETENTION_MS = 3 * 86_400_000;
/** Deliveries that wait for a webhook that fails; at more, it is disabled. */
const MAX_WAITING_FAILED_DELIVERIES = 100_000;
/** Deliveries that wait for a webhook that only is too slow; at more, it is disabled. */
const MAX_WAITING_DELIVERIES = 1_000_000;
/** Interval at which old deliveries are deleted. */
const DELIVERY_PRUNE_INTERVAL_MS = 60_000;
/** Old deliveries that are deleted at once. */
const MAX_PRUNED_DELIVERIES = 1_000;

export interface DelivererOptions {
  readonly hosting: Pick<
    WebhookStorage,
    "usesWebhooks" | "takeDeliveries" | "recordDelivery" | "pruneDeliveries"
  >;
  readonly storage: Pick<Storage, "getResult">;
  readonly changes: Pick<ChangeFeed, "listen">;
  readonly keys: Pick<KeyRing, "unseal">;
  /** Where people reach the platform. */
  readonly platformUrl: string;
  /** Host rules of the operator: what is reached although it is not public. */
  readonly allowedEgress: readonly string[];
  readonly now: () => number;
  readonly newId: () => string;
  readonly log: Log;
  /** Sends a mail about alerts to an address; rejects where it was not taken. Default: no mail is sent. */
  readonly mail?: ((address: string, message: AlertMessage) => Promise<void>) | undefined;
  /** Default: the resolver of the operating system. */
  readonly resolve?: Resolve;
  /** How long an attempt may take. Default: 15 s. */
  readonly timeoutMs?: number;
  /** Default: `DELIVERY_RETRY_PAUSES_MS`. */
  readonly retryPausesMs?: readonly number[];
}

export class Deliverer implements AsyncDisposable {
  readonly #options: DelivererOptions;
  readonly #policy: EgressPolicy;
  readonly #bound = new SharedBound(MAX_PARALLEL_DELIVERIES);
  /** How many of each webhook are under way. */
  readonly #underWay = new Map<string, number>();
  readonly #sending = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  readonly #timers: readonly Timer[];
  readonly #unlisten: () => void;
  /** Whether there may be something to look for. */
  #inUse = true;
  #looking: Promise<void> | undefined;
  #lookAgain = false;

  constructor(options: DelivererOptions) {
    const { changes, log, allowedEgress } = options;
    this.#options = options;
    this.#policy = EgressPolicy.ofPlatform(allowedEgress);
    const failed = (err: unknown): void =>
      log.error({ err }, "the deliveries of webhooks could not be read");
    this.#timers = [
      new Timer(DELIVERY_POLL_INTERVAL_MS, async () => this.#inUse && this.look(), failed),
      new Timer(DELIVERY_PRUNE_INTERVAL_MS, async () => this.#inUse && this.#prune(), failed),
    ];
    this.#unlisten = changes.listen((forgotten) => {
      this.#inUse ||= forgotten.some(({ kind }) => kind === "deployment" || kind === "everything");
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#unlisten();
    this.#stopping.abort();
    await Promise.all(this.#timers.map((timer) => timer[Symbol.asyncDispose]()));
    await this.#looking?.catch(() => undefined);
    await Promise.all(this.#sending);
  }

  /** Takes what is due and there is room for; one look at a time. */
  look(): Promise<void> {
    this.#lookAgain = true;
    this.#looking ??= this.#lookWhileAsked().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #lookWhileAsked(): Promise<void> {
    while (this.#lookAgain && !this.#stopping.signal.aborted) {
      this.#lookAgain = false;
      await this.#takeDue();
    }
  }

  async #takeDue(): Promise<void> {
    const { hosting, newId, now } = this.#options;
    const limit = MAX_PARALLEL_DELIVERIES - this.#bound.taken;
    if (limit === 0) {
      return;
    }
    const claim = newId();
    const taken = await hosting.takeDeliveries({
      ...{ claim, nowMs: now(), ttlMs: DELIVERY_CLAIM_MS, limit },
      perWebhook: MAX_DELIVERIES_PER_WEBHOOK,
      withoutOrganizations: this.#bound.full,
      // One whose deliveries are under way waits for their ends, which bounds and orders them.
      withoutWebhooks: [...this.#underWay.keys()],
    });
    for (const delivery of taken) {
      this.#begin(delivery, claim);
    }
    if (taken.length === 0 && this.#sending.size === 0) {
      // Before the question: a change that comes while it is asked counts.
      this.#inUse = false;
      const uses = await hosting.usesWebhooks({});
      this.#inUse ||= uses;
    }
  }

  #begin(delivery: TakenDelivery, claim: string): void {
    const { organizationId, webhookId } = delivery;
    // One organization may pass its share by what one look has found, and has none until it is below.
    const isCounted = this.#bound.take(organizationId);
    this.#underWay.set(webhookId, (this.#underWay.get(webhookId) ?? 0) + 1);
    const sending = this.#deliver(delivery, claim)
      .catch((err: unknown) => {
        const { deliveryId } = delivery;
        // Its claim ends, and it is sent again.
        this.#options.log.error({ err, deliveryId }, "a delivery of a webhook was not recorded");
      })
      .then(() => {
        if (isCounted) {
          this.#bound.give(organizationId);
        }
        const left = (this.#underWay.get(webhookId) ?? 1) - 1;
        if (left === 0) {
          this.#underWay.delete(webhookId);
        } else {
          this.#underWay.set(webhookId, left);
        }
        this.#sending.delete(sending);
        if (left === 0 && !this.#stopping.signal.aborted) {
          this.look().catch(() => undefined); // The timer looks again, and reports.
        }
      });
    this.#sending.add(sending);
  }

  async #deliver(delivery: TakenDelivery, claim: string): Promise<void> {
    const { hosting, now, log } = this.#options;
    const { signal } = this.#stopping;
    const body = delivery.body ?? (await eventBody(delivery, this.#options));
    const atMs = now();
    const id = delivery.deliveryId;
    const answered = await this.#send(delivery, { body, nowMs: atMs });
    if (signal.aborted && answered.status === 0) {
      // The node stops: another one sends it, and the receiver is not to blame.
      return;
    }
    const answer: DeliveryAnswer = { atMs, tookMs: Math.max(0, now() - atMs), ...answered };
    const next = this.#next(delivery, answer);
    const { deploymentId, organizationId, webhookId, webhook } = delivery;
    await hosting.recordDelivery({
      ...{ deploymentId, organizationId, webhookId, deliveryId: id, claim, nowMs: now() },
      ...next,
      answers: [...delivery.answers, answer].slice(-MAX_KEPT_ANSWERS),
      body,
    });
    if (next.disable !== undefined) {
      log.warn({ webhook, deploymentId }, `a webhook was disabled: ${next.disable}`);
    }
  }

  async #send(
    delivery: TakenDelivery,
    { body, nowMs }: { readonly body: string; readonly nowMs: number },
  ): Promise<PostAnswer> {
    const { keys, log, resolve, timeoutMs } = this.#options;
    const { deliveryId: id, deploymentId, webhook, kind } = delivery;
    if (kind === "mail") {
      return this.#mail(delivery, body);
    }
    let secrets: WebhookSecret[] = [];
    let url = new URL(delivery.url);
    try {
      const sealed = keys.unseal(delivery.sealed, webhookContext(delivery));
      if (kind === "slack") {
        url = new URL(sealed);
      } else {
        secrets = readSecrets(sealed);
      }
    } catch (err) {
      log.error({ err, webhook, deploymentId }, "the secrets of a webhook could not be unsealed");
      const error =
        "the platform cannot read the secret of the webhook: ask its operator, or rotate it";
      return { status: 0, text: "", error };
    }
    const sent =
      kind === "slack"
        ? { headers: {}, body: slackBody(JSON.parse(body) as AlertMessage) }
        : { headers: signedHeaders({ id, body, nowMs }, secrets), body };
    return post(url, sent, {
      policy: this.#policy,
      resolve,
      signal: this.#stopping.signal,
      timeoutMs,
    });
  }

  /** A mail that the server has taken has its answer 250. */
  async #mail({ url }: TakenDelivery, body: string): Promise<PostAnswer> {
    const { mail } = this.#options;
    if (mail === undefined) {
      return { status: 0, text: "", error: "the platform has no mail server: ask its operator" };
    }
    try {
      await mail(url.replace(/^mailto:/, ""), JSON.parse(body) as AlertMessage);
      return { status: 250, text: "", error: "" };
    } catch (err) {
      this.#options.log.warn({ err }, "a mail about alerts was not taken");
      return { status: 0, text: "", error: "the mail server did not take it" };
    }
  }

  /** What becomes of a delivery after this answer. */
  #next(
    { attempts }: TakenDelivery,
    { status }: DeliveryAnswer,
  ): {
    readonly state: DeliveryState;
    readonly nextInMs: number;
    readonly pausesMs: readonly number[];
    readonly disable?: string;
  } {
    if (status >= 200 && status < 300) {
      return { state: "delivered", nextInMs: 0, pausesMs: [] };
    }
    const pausesMs = BREAKER_PAUSES_MS;
    if (status === 410) {
      const disable = "it answered 410: it wants no more of them";
      return { state: "failed", nextInMs: 0, pausesMs, disable };
    }
    const { retryPausesMs = DELIVERY_RETRY_PAUSES_MS } = this.#options;
    const pauseMs = retryPausesMs[attempts];
    return pauseMs === undefined
      ? { state: "failed", nextInMs: 0, pausesMs }
      : {
          state: "waiting",
          nextInMs: Math.round(
            pauseMs * (1 - MAX_RETRY_JITTER / 2 + Math.random() * MAX_RETRY_JITTER),
          ),
          pausesMs,
        };
  }

  async #prune(): Promise<void> {
    const { hosting, now } = this.#options;
    let fromMs = 0;
    for (;;) {
      const nowMs = now();
      const { deleted, reachedMs } = await hosting.pruneDeliveries({
        ...{ nowMs, fromMs, beforeMs: nowMs - DELIVERY_RETENTION_MS, limit: MAX_PRUNED_DELIVERIES },
        maxWaiting: MAX_WAITING_DELIVERIES,
        maxWaitingFailed: MAX_WAITING_FAILED_DELIVERIES,
      });
      if (deleted < MAX_PRUNED_DELIVERIES) {
        return;
      }
      fromMs = reachedMs;
    }
  }
}

// POST to an address that a caller has named. It is judged as what workers connect to: refused where
// it is not public, and connected to at the address that was judged, so that a name which resolves
// to another the next time gains nothing. Redirects are not followed, and of the answer little is
// read.

/** How long one attempt may take, from the look at the name to the end of what is read. */
const DELIVERY_TIMEOUT_MS = 15_000;
/** Of an answer, what is read and kept. */
const MAX_ANSWER_BYTES = 1_024;
/** Headers of an answer. */
const MAX_ANSWER_HEADER_BYTES = 16 * 1_024;

interface PostOptions {
  readonly policy: EgressPolicy;
  /** Default: the resolver of the operating system. */
  readonly resolve?: Resolve | undefined;
  readonly signal: AbortSignal;
  /** Default: 15 s. */
  readonly timeoutMs?: number | undefined;
}

/** What a receiver answered; `error` says why there is no answer. */
interface PostAnswer {
  /** 0 without an answer. */
  readonly status: number;
  readonly text: string;
  readonly error: string;
}

/** Sends a body as JSON. Never rejects: what went wrong is in the answer. */
async function post(
  url: URL,
  { headers, body }: { readonly headers: Record<string, string>; readonly body: string },
  { policy, resolve, signal: stopping, timeoutMs = DELIVERY_TIMEOUT_MS }: PostOptions,
): Promise<PostAnswer> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = AbortSignal.any([stopping, timeout]);
  try {
    const socket = await dialUrl(url, { policy, resolve, signal, idleMs: timeoutMs });
    try {
      return await new Promise<PostAnswer>((settle, reject) => {
        const bytes = Buffer.from(body);
        const req = request({
          method: "POST",
          path: `${url.pathname}${url.search}`,
          headers: {
            ...headers,
            host: url.host,
            "content-type": "application/json",
            "content-length": bytes.length,
            "user-agent": `tessera/${version}`,
            connection: "close",
          },
          maxHeaderSize: MAX_ANSWER_HEADER_BYTES,
          createConnection: () => socket,
          signal,
        });
        let hasStatus = false;
        // With a status, the end of the answer says the rest.
        req.on("error", (err) => hasStatus || reject(err));
        // Whatever else ends it without an answer.
        req.on("close", () => hasStatus || reject(new Error("no answer")));
        // To speak another protocol is no success, and nothing of it is read.
        req.on("upgrade", ({ statusCode: status = 0 }) => {
          hasStatus = true;
          settle({ status, text: "", error: "" });
        });
        req.on("response", (res) => {
          hasStatus = true;
          const { statusCode: status = 0 } = res;
          const chunks: Buffer[] = [];
          let length = 0;
          const end = (): void => {
            const text = Buffer.concat(chunks).subarray(0, MAX_ANSWER_BYTES).toString();
            settle({ status, text, error: "" });
          };
          res.on("data", (chunk: Buffer) => {
            chunks.push(chunk);
            length += chunk.length;
            if (length >= MAX_ANSWER_BYTES) {
              end();
              res.destroy();
            }
          });
          // The status counts, also where the body breaks off.
          res.on("end", end).on("error", end).on("close", end);
        });
        req.end(bytes);
      });
    } finally {
      socket.destroy();
    }
  } catch (err) {
    return { status: 0, text: "", error: errorText(err, url, timeout.aborted && timeoutMs) };
  }
}

function errorText(err: unknown, url: URL, lateMs: number | false): string {
  if (lateMs !== false) {
    return `${url.host} took longer than ${lateMs / 1_000} s`;
  }
  if (err instanceof EgressRefusedError || err instanceof EgressFailedError) {
    return err.message;
  }
  const { code = (err as Error).message } = err as NodeJS.ErrnoException;
  return `${url.host} broke off: ${code}`;
}
