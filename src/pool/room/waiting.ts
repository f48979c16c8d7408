/**
 * The queue of requests for room, by organization: whose turn it is. Nobody is compared with
 * everybody, so that a thousand deployments that wait make no start slower.
 *
 * First come roll-outs for whose GPUs their own deployments have ended workers, which go to no one
 * else. Then come the organizations with the fewest workers on the node. Among those with equally
 * many, first come requests that a caller waits for, and otherwise who waits longest.
 */
import type { RoomRequest } from "./room.ts";

interface Waiting {
  readonly request: RoomRequest;
  /** Its place by the time that it came. */
  readonly place: number;
}

interface Turns {
  /** The workers that an organization has on the node. */
  held(organization: string): number;
  /** Whether there may be room for another worker of an organization; if not, for roll-outs alone. */
  hasRoom(organization: string): boolean;
}

interface Queued {
  readonly urgent: boolean;
  readonly rolloutsOnly: boolean;
}

export class WaitingRequests {
  readonly #organizations = new Map<string, Map<RoomRequest, Waiting>>();
  readonly #rollouts = new Set<RoomRequest>();
  #size = 0;
  #came = 0;

  get size(): number {
    return this.#size;
  }

  /** One that waits already keeps its place. */
  add(request: RoomRequest): void {
    const { organization } = request.tenant;
    const waiting = this.#organizations.get(organization) ?? new Map<RoomRequest, Waiting>();
    if (!waiting.has(request)) {
      this.#came += 1;
      this.#size += 1;
      waiting.set(request, { request, place: this.#came });
      this.#organizations.set(organization, waiting);
    }
    if (request.isRollout === true) {
      this.#rollouts.add(request);
    }
  }

  /** Returns whether it was waiting. */
  delete(request: RoomRequest): boolean {
    const { organization } = request.tenant;
    const waiting = this.#organizations.get(organization);
    if (waiting?.delete(request) !== true) {
      return false;
    }
    this.#size -= 1;
    this.#rollouts.delete(request);
    if (waiting.size === 0) {
      this.#organizations.delete(organization);
    }
    return true;
  }

  clear(): void {
    this.#organizations.clear();
    this.#rollouts.clear();
    this.#size = 0;
  }

  /** Those that there may be room for, in turn. */
  *inTurn({ held, hasRoom }: Turns): Iterable<RoomRequest> {
    const late = [...this.#rollouts].filter(isLate);
    yield* late.sort((a, b) => held(a.tenant.organization) - held(b.tenant.organization));
    const rolling = new Set([...this.#rollouts].map(({ tenant }) => tenant.organization));
    const open = [...this.#organizations.keys()].filter(
      (name) => rolling.has(name) || hasRoom(name),
    );
    const byHeld = [...Map.groupBy(open, held)].sort(([a], [b]) => a - b);
    for (const [, names] of byHeld) {
      for (const urgent of [true, false]) {
        yield* merged(
          names.map((name) => this.#queue(name, { urgent, rolloutsOnly: !hasRoom(name) })),
        );
      }
    }
  }

  /** The requests of an organization, who waits longest first. */
  *#queue(name: string, { urgent, rolloutsOnly }: Queued): Generator<Waiting, undefined> {
    for (const waiting of this.#organizations.get(name)?.values() ?? []) {
      const { request } = waiting;
      const isOne = (!rolloutsOnly || request.isRollout === true) && !isLate(request);
      if (isOne && request.isUrgent() === urgent) {
        yield waiting;
      }
    }
  }
}

/** The requests of several queues by their places. */
function* merged(queues: readonly Generator<Waiting, undefined>[]): Iterable<RoomRequest> {
  const heads = queues.map((queue) => ({ queue, head: queue.next().value }));
  for (;;) {
    let first = heads[0];
    for (const each of heads) {
      first = (each.head?.place ?? Infinity) < (first?.head?.place ?? Infinity) ? each : first;
    }
    if (first?.head === undefined) {
      return;
    }
    yield first.head.request;
    first.head = first.queue.next().value;
  }
}

/** Whether what its own deployment has left goes to no one else. */
export function isLate(request: RoomRequest): boolean {
  return request.isRollout === true && request.need().gpus !== undefined;
}
