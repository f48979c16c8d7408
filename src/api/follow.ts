/**
 * Streams of a state that is read once a second, by polling: once for all who follow the same
 * state, and not at all while nobody does. Each follower is sent what is new to it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { toBinary } from "@bufbuild/protobuf";
import { SharedBound } from "../collections/shared-bound.ts";
import { problem } from "../errors.ts";
import { SharedRead } from "../time/shared-read.ts";

/** Interval at which a state that is followed is read. */
const FOLLOW_POLL_INTERVAL_MS = 1_000;

/** How long a follower goes without a message: proxies close connections that say nothing. */
const FOLLOW_KEEP_ALIVE_MS = 20_000;

/** How long a state is followed: then the caller proves again who it is. */
const MAX_FOLLOW_MS = 600_000;

/** Callers that may follow tasks on this node at once, and as many deployments. */
const MAX_FOLLOWERS = 500;

/** What one kind of stream says. */
export interface Telling<State, Message> {
  /** What a follower does not know yet; undefined: nothing. `sent` is undefined at first. */
  changeOf(sent: State | undefined, next: State): Message | undefined;
  /** The message that says nothing new. */
  unchanged(state: State): Message;
  /** True when nothing can change any more: the stream ends. Default: never. */
  isOver?(state: State): boolean;
}

interface Following extends Pick<FollowOptions<never>, "signal"> {
  /** How long a state is followed, in milliseconds. */
  readonly forMs: number;
  /** How long without a message, in milliseconds. */
  readonly keepAliveMs: number;
}

interface FollowOptions<State> {
  /** Of the follower. */
  readonly organizationId: string;
  /** The same for all who follow the same state. */
  readonly key: string;
  /** Reads the state; gets the one that was read before, if any. */
  read(before: State | undefined): Promise<State>;
  /** Default: ten minutes, which is also the maximum. */
  readonly forMs: number | undefined;
  readonly signal: AbortSignal;
}

interface Followed<State> {
  readonly state: SharedRead<State>;
  followers: number;
}

/** The followers of one kind of state on this node. */
export class Followers<State> {
  readonly #what: string;
  readonly #followed = new Map<string, Followed<State>>();
  readonly #places = new SharedBound(MAX_FOLLOWERS);

  /** @param what what is followed, for the message to callers beyond the limit */
  constructor(what: string) {
    this.#what = what;
  }

  /** Yields what changes. Throws TOO_MANY_WAITING, and the errors of reading. */
  async *follow<Message>(
    { organizationId, key, read, forMs = MAX_FOLLOW_MS, ...rest }: FollowOptions<State>,
    telling: Telling<State, Message>,
  ): AsyncGenerator<Message> {
    const places = this.#places;
    if (!places.take(organizationId)) {
      const message = `no more callers can follow ${this.#what} here (${places.refusal(organizationId)}): try again`;
      throw problem("TOO_MANY_WAITING", message, { retryAfterMs: 5_000 });
    }
    const followed = this.#followed.get(key) ?? { state: shared(read), followers: 0 };
    this.#followed.set(key, followed);
    followed.followers += 1;
    try {
      const keepAliveMs = FOLLOW_KEEP_ALIVE_MS;
      yield* follow(followed.state, { ...rest, forMs, keepAliveMs }, telling);
    } finally {
      places.give(organizationId);
      followed.followers -= 1;
      if (followed.followers === 0) {
        this.#followed.delete(key);
      }
    }
  }
}

function shared<State>(read: FollowOptions<State>["read"]): SharedRead<State> {
  let before: State | undefined;
  const readNext = async (): Promise<State> => {
    before = await read(before);
    return before;
  };
  return new SharedRead(readNext, { maxAgeMs: FOLLOW_POLL_INTERVAL_MS });
}

/** Exported for tests, which have no twenty seconds. */
export async function* follow<State, Message>(
  state: Pick<SharedRead<State>, "get">,
  { forMs, keepAliveMs, signal }: Following,
  { changeOf, unchanged, isOver = () => false }: Telling<State, Message>,
): AsyncGenerator<Message> {
  const untilMs = performance.now() + forMs;
  let sent: State | undefined;
  let sentMs = 0;
  let leftMs = forMs;
  do {
    const next = await state.get();
    signal.throwIfAborted();
    const change = sent === next ? undefined : changeOf(sent, next);
    const nowMs = performance.now();
    if (change !== undefined || nowMs - sentMs >= keepAliveMs) {
      yield change ?? unchanged(next);
      sentMs = nowMs;
    }
    if (isOver(next)) {
      return;
    }
    sent = next;
    const pauseMs = Math.min(FOLLOW_POLL_INTERVAL_MS, leftMs);
    await sleep(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted());
    leftMs = untilMs - performance.now();
  } while (leftMs > 0);
}

/** A message of a state, with its bytes, by which a change is seen. */
interface Shown<Message> {
  readonly message: Message;
  readonly bytes: Uint8Array;
}

/** Messages by id. One that has not changed is the same object in the states one after another. */
export type ShownById<Message> = ReadonlyMap<string, Shown<Message>>;

/** Messages by id; those that are as they were before are taken from there. */
export function shownById<Desc extends DescMessage>(
  desc: Desc,
  messages: Iterable<readonly [id: string, message: MessageShape<Desc>]>,
  before: ShownById<MessageShape<Desc>> = new Map(),
): ShownById<MessageShape<Desc>> {
  const shown = new Map<string, Shown<MessageShape<Desc>>>();
  for (const [id, message] of messages) {
    const bytes = toBinary(desc, message);
    const known = before.get(id);
    const isSame = known !== undefined && Buffer.compare(known.bytes, bytes) === 0;
    shown.set(id, isSame ? known : { message, bytes });
  }
  return shown;
}

/** What is new or has changed, in its order, and the ids of what is gone. */
export function differences<Message>(
  sent: ShownById<Message> = new Map(),
  next: ShownById<Message>,
): { readonly changed: Message[]; readonly removedIds: string[] } {
  return {
    changed: [...next].flatMap(([id, one]) => (sent.get(id) === one ? [] : [one.message])),
    removedIds: [...sent.keys()].filter((id) => !next.has(id)),
  };
}

/** Tells of deployments by what is new or has changed of them, and the ids of those that are gone. */
export const tellingDeployments = {
  changeOf<Message>(sent: ShownById<Message> | undefined, next: ShownById<Message>) {
    const { changed, removedIds } = differences(sent, next);
    return sent !== undefined && changed.length === 0 && removedIds.length === 0
      ? undefined
      : { deployments: changed, removedDeploymentIds: removedIds };
  },
  unchanged: () => ({}),
};
