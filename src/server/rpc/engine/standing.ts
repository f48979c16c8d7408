/**
 * The standing of the callers of streams. A call is authorized once; a stream lasts, so its caller
 * is asked for again every two seconds, and as soon as this node hears of a change, and it ends with
 * their credential: one that was deleted, has expired or may do less, whose owner was demoted or
 * removed, or a session that was ended. It ends with the server, too.
 *
 * One timer serves the streams of all protocols, and does not run without streams. Asking costs
 * a look into the caches of credentials and deployments, which the change feed keeps fresh. While
 * the database does not answer, nobody knows more, and a stream ends no sooner than the time that
 * its credential was valid to when it was last asked for.
 */
import { Code, type ContextValues, createContextKey } from "@connectrpc/connect";
import { principalOf } from "../../../auth/principal.ts";
import { copyOf, type Problem, problem, toProblem } from "../../../errors.ts";

/** How often the callers of streams are asked for. */
const STANDING_CHECK_INTERVAL_MS = 2_000;

/** Streams that are asked about before other work has its turn. */
const MAX_STREAMS_PER_TURN = 100;

/** How the caller of a stream is found again, where it is not by the headers of the request. */
interface Standing {
  /** Puts the caller, as they stand now, into the call's context values. */
  readonly identify: () => Promise<void> | undefined;
  /** The error that the stream ends with. Default: the one that says why. */
  readonly ended?: (cause: Problem) => Problem;
}

const standingKey = createContextKey<Standing | undefined>(undefined, {
  description: "how the caller of a stream is found again",
});

/** Says how the caller of a stream is found again. */
export function setStanding(values: ContextValues, standing: Standing): void {
  values.set(standingKey, standing);
}

export function standingOf(values: ContextValues): Standing | undefined {
  return values.get(standingKey);
}

/** A stream under way. */
export interface LastingStream {
  readonly values: ContextValues;
  /** Throws or rejects when the caller may not go on. Absent where nothing can change. */
  readonly ask?: (() => Promise<void>) | undefined;
  /** Ends the stream with an error. */
  end(found: Problem): void;
}

interface StandingsOptions {
  readonly now?: () => number;
  readonly intervalMs?: number;
}

/** The streams of a server whose callers are asked for again. */
export class Standings {
  readonly #streams = new Set<LastingStream>();
  /** Those whose question is not answered yet. */
  readonly #asked = new Set<LastingStream>();
  /** Those of them that something has changed for since they were asked about. */
  readonly #stale = new Set<LastingStream>();
  readonly #now: () => number;
  readonly #intervalMs: number;
  /** Of the next round of questions; undefined during one, and without streams. */
  #timer: NodeJS.Timeout | undefined;
  #isAsking = false;
  /** What they may do has changed since the round that is under way has begun. */
  #asksAgain = false;
  /** What ended all. */
  #ended: Problem | undefined;

  constructor({ now = Date.now, intervalMs = STANDING_CHECK_INTERVAL_MS }: StandingsOptions = {}) {
    this.#now = now;
    this.#intervalMs = intervalMs;
  }

  get size(): number {
    return this.#streams.size;
  }

  /** Begins to ask about a stream. Returns the function that stops it. */
  add(stream: LastingStream): () => void {
    if (this.#ended) {
      stream.end(copyOf(this.#ended));
      return () => {};
    }
    this.#streams.add(stream);
    this.#schedule();
    return () => {
      this.#streams.delete(stream);
      this.#asked.delete(stream);
      if (this.#streams.size === 0) {
        clearTimeout(this.#timer);
        this.#timer = undefined;
      }
    };
  }

  /** Ends all streams, and those that begin later, with an error. */
  endAll(found: Problem): void {
    this.#ended ??= found;
    for (const stream of [...this.#streams]) {
      stream.end(copyOf(found));
    }
  }

  /** Asks about all streams now: what their callers may do has changed. */
  hurry(): void {
    for (const stream of this.#asked) {
      this.#stale.add(stream);
    }
    if (this.#isAsking) {
      this.#asksAgain = true;
    } else if (this.#streams.size > 0) {
      clearTimeout(this.#timer);
      void this.#askAll();
    }
  }

  /** One timer at a time: a round that is under way sets the next one itself. */
  #schedule(): void {
    if (!this.#isAsking && this.#streams.size > 0) {
      this.#timer ??= setTimeout(() => void this.#askAll(), this.#intervalMs).unref();
    }
  }

  async #askAll(): Promise<void> {
    this.#timer = undefined;
    this.#isAsking = true;
    let turn = 0;
    for (const stream of [...this.#streams]) {
      if (this.#streams.has(stream)) {
        this.#ask(stream);
      }
      turn += 1;
      if (turn % MAX_STREAMS_PER_TURN === 0) {
        await new Promise(setImmediate);
      }
    }
    this.#isAsking = false;
    if (this.#asksAgain) {
      this.#asksAgain = false;
      this.hurry();
    } else {
      this.#schedule();
    }
  }

  #ask(stream: LastingStream): void {
    if (stream.ask === undefined) {
      return;
    }
    if (this.#asked.has(stream)) {
      this.#endExpired(stream);
      return;
    }
    this.#asked.add(stream);
    stream
      .ask()
      .catch((thrown: unknown) => {
        const found = endOf(toProblem(thrown));
        if (found === undefined) {
          this.#endExpired(stream);
        } else {
          stream.end(standingOf(stream.values)?.ended?.(found) ?? found);
        }
      })
      .finally(() => {
        this.#asked.delete(stream);
        if (this.#stale.delete(stream) && this.#streams.has(stream)) {
          this.#ask(stream);
        }
      });
  }

  /** Ends a stream whose credential has expired, as far as it is known. */
  #endExpired(stream: LastingStream): void {
    const principal = principalOf(stream.values);
    if (principal && "expiresAtMs" in principal && this.#now() >= principal.expiresAtMs) {
      stream.end(problem("TOKEN_INVALID", "the credential of this stream has expired"));
    }
  }
}

/** What a stream ends with; undefined for a passing failure to find out. */
function endOf(found: Problem): Problem | undefined {
  switch (found.code) {
    case Code.Unauthenticated:
    case Code.PermissionDenied:
      // One error may be thrown to several callers, and each adds the id of its request.
      return copyOf(found);
    case Code.NotFound:
      // Hiding what there is has no use: it was read until now.
      return problem(
        "ACCESS_DENIED",
        "the credential of this stream may not read it any more: its access, its owner or its deployment have changed",
        { cause: found },
      );
    default:
      return undefined;
  }
}
