/**
 * Limits by key of calls of apis, and of requests to mounted servers: how many of one key run at a time, and a token bucket of its rate.
 * They are this node's alone, so that a call asks nobody: over several nodes they are soft.
 *
 * The number of keys is bounded. One whose bucket is full when its last call ends is not kept; beyond
 * the bound the one that came longest ago is forgotten, and begins anew. So does each key when a
 * revision has another rate.
 */
import { TokenBucket } from "../../collections/token-bucket.ts";
import { problem, type Quota } from "../../errors.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";

/** Keys of the apis of a deployment that are kept: some 10 MB. */
const MAX_LIMITED_KEYS = 50_000;

/** The `retry-after` where a key has as many calls under way as it may: one may end at any time. */
const KEY_BUSY_RETRY_MS = 1_000;

interface Use {
  /** Its calls under way, also those that wait for a slot. */
  running: number;
  readonly bucket: TokenBucket | undefined;
}

type Limited = Pick<EndpointManifest, "name" | "byKey">;

export class KeyLimits {
  readonly #capacity: number;
  readonly #nowMs: (() => number) | undefined;
  /** In the order of their last calls. */
  readonly #uses = new Map<string, Use>();

  /** `nowMs` is a monotonic clock. Default: that of the process. */
  constructor(capacity = MAX_LIMITED_KEYS, nowMs?: () => number) {
    this.#capacity = capacity;
    this.#nowMs = nowMs;
  }

  /** The number of keys that are kept. */
  get size(): number {
    return this.#uses.size;
  }

  /**
   * A call of this key begins; it ends when the answer is disposed of, which may happen again. Undefined
   * where the endpoint has no limits by key. Throws KEY_LIMITED.
   * @param onQuota takes what the key has left of a rate
   */
  enter(
    { name, byKey }: Limited,
    key = "",
    onQuota?: (left: Quota) => void,
  ): Disposable | undefined {
    if (byKey === undefined) {
      return undefined;
    }
    const { concurrency = Number.POSITIVE_INFINITY, rate } = byKey;
    const id = `${name} ${rate?.count}/${rate?.periodMs} ${key}`;
    const use = this.#uses.get(id) ?? { running: 0, bucket: this.#bucket(byKey) };
    if (use.running >= concurrency) {
      const message = `the key of this call has ${concurrency} calls of ${name} under way, which is the limit: try again when one has ended`;
      throw problem("KEY_LIMITED", message, { retryAfterMs: KEY_BUSY_RETRY_MS });
    }
    if (rate && use.bucket?.take() === false) {
      const { count: quota, periodMs: windowMs } = rate;
      const resetMs = use.bucket.msUntil(1);
      const message = `the key of this call may make ${quota} calls of ${name} in ${windowMs / 1_000} s, which it has made: try again in ${Math.ceil(resetMs / 1_000)} s`;
      throw problem("KEY_LIMITED", message, {
        retryAfterMs: resetMs,
        spentQuota: { name: "key", quota, windowMs, resetMs },
      });
    }
    if (rate && use.bucket && onQuota) {
      const { left } = use.bucket;
      const resetMs = use.bucket.msUntil(left + 1);
      onQuota({ name: "key", quota: rate.count, windowMs: rate.periodMs, left, resetMs });
    }
    use.running += 1;
    this.#uses.delete(id);
    this.#uses.set(id, use);
    this.#forget();
    let isOver = false;
    return {
      [Symbol.dispose]: () => {
        if (isOver) {
          return;
        }
        isOver = true;
        use.running -= 1;
        const isIdle = use.running === 0 && use.bucket?.isFull !== false;
        if (isIdle && this.#uses.get(id) === use) {
          this.#uses.delete(id);
        }
      },
    };
  }

  #bucket({ rate }: NonNullable<Limited["byKey"]>): TokenBucket | undefined {
    return (
      rate &&
      new TokenBucket({
        size: rate.count,
        refillMs: rate.periodMs / rate.count,
        nowMs: this.#nowMs,
      })
    );
  }

  #forget(): void {
    const [oldest] = this.#uses.size > this.#capacity ? this.#uses.keys() : [];
    if (oldest !== undefined) {
      this.#uses.delete(oldest);
    }
  }
}
