import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Gpu } from "../../../src/pool/gpus/gpus.ts";
import { GpuLedger } from "../../../src/pool/gpus/ledger.ts";
import { NodeBudget } from "../../../src/pool/room/budget.ts";
import type {
  ReadyWorker,
  Room,
  RoomNeed,
  RoomRequest,
  Tenant,
} from "../../../src/pool/room/room.ts";

const MIB = 1024 ** 2;

let budget: NodeBudget;
let budgets: NodeBudget[];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  budgets = [];
});

afterEach(() => {
  for (const each of budgets) {
    each[Symbol.dispose]();
  }
  vi.useRealTimers();
});

/** A node with room for so many workers, of one organization or of all. */
function node(
  workers: number,
  {
    memoryMib = 1_000_000,
    perOrganization = { workers, memoryMib },
  }: {
    memoryMib?: number;
    perOrganization?: { workers: number; memoryMib: number };
  } = {},
): NodeBudget {
  const organization = {
    workers: perOrganization.workers,
    memoryBytes: perOrganization.memoryMib * MIB,
  };
  budget = new NodeBudget({ node: { workers, memoryBytes: memoryMib * MIB }, organization });
  budgets.push(budget);
  return budget;
}

/** A deployment that starts a worker wherever it finds room for one that it wants. */
class FakePool implements Tenant, RoomRequest {
  readonly organization: string;
  readonly deployment = "pool";
  readonly tenant = this;
  readonly rooms: Room[] = [];
  /** The rooms of its workers that do nothing, with the time since when. */
  readonly sleeping = new Map<Room, number>();
  readonly evicted: Room[] = [];
  isRollout = false;
  urgent = false;
  min = 0;
  memory: RoomNeed = { leastBytes: 96 * MIB, expectedBytes: 0 };
  /** How often it was asked what it needs. */
  asked = 0;
  #wanted = 0;

  constructor(organization: string) {
    this.organization = organization;
  }

  isUrgent(): boolean {
    return this.urgent;
  }

  isNeeded(): boolean {
    return this.urgent;
  }

  need(): RoomNeed {
    this.asked += 1;
    return this.memory;
  }

  want(workers: number): this {
    this.#wanted = workers;
    this.again();
    return this;
  }

  again(): void {
    while (this.rooms.length < this.#wanted) {
      const room = budget.tryEnter(this);
      if (room === undefined) {
        return;
      }
      this.rooms.push(room);
    }
  }

  /** All its workers do nothing from now on. */
  rest(): this {
    for (const room of this.rooms) {
      this.sleeping.set(room, performance.now());
    }
    return this;
  }

  *workers(): Iterable<ReadyWorker> {
    const spare = this.sleeping.size - this.min;
    for (const [index, [room, idleSinceMs]] of [...this.sleeping].entries()) {
      const evict = (): void => {
        this.#wanted -= 1;
        this.sleeping.delete(room);
        this.evicted.push(room);
      };
      yield { room, readyMs: idleSinceMs, idleSinceMs, isKept: index >= spare, evict };
    }
  }

  /** A worker has ended, the first one unless it is named. */
  async end(room = this.rooms[0]): Promise<void> {
    this.rooms.splice(this.rooms.indexOf(room as Room), 1);
    room?.leave();
    await turn();
  }

  /** A worker that was evicted has ended. */
  async gone(): Promise<void> {
    await this.end(this.evicted.shift());
  }
}

/** Lets everything run that does not wait for a timer. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("the GPUs in a node's budget", () => {
  const GPU: Gpu = {
    ...{ index: 0, uuid: "GPU-0", name: "NVIDIA L4", minor: 0 },
    ...{ memoryBytes: 24 * 1024 ** 3, usedBytes: 0 },
  };

  /** A node with one GPU. */
  function withGpu(): void {
    const limits = { workers: 10, memoryBytes: 1e12 };
    const gpus = new GpuLedger({ list: [GPU] });
    budget = new NodeBudget({ node: limits, organization: limits }, { gpus });
    budgets.push(budget);
  }

  function pool(min = 1): FakePool {
    const made = new FakePool("acme");
    made.min = min;
    made.memory = { ...made.memory, gpus: { count: 1 } };
    return made;
  }

  async function later(ms: number): Promise<void> {
    vi.advanceTimersByTime(ms);
    await turn();
  }

  it("are given by an idle worker of a minimum after a minute, to one that is needed", async () => {
    withGpu();
    const first = pool().want(1).rest();
    const second = pool();
    second.urgent = true;
    second.want(1);
    await later(59_000);
    expect(first.evicted).toHaveLength(0);
    await later(1_500);
    expect(first.evicted).toHaveLength(1);
    expect(second.rooms).toHaveLength(0);
    await first.gone();
    expect(second.rooms[0]?.gpus).toEqual([GPU]);
  });

  it("stay with a worker of a minimum while others want them for theirs alone, and with a busy one", async () => {
    withGpu();
    const first = pool().want(1).rest();
    const second = pool().want(1);
    await later(600_000);
    expect(first.evicted).toHaveLength(0);
    first.sleeping.clear();
    second.urgent = true;
    await later(600_000);
    expect(first.evicted).toHaveLength(0);
    expect(budget.shortage(second)).toMatch(/GPU 0 \(NVIDIA L4\) is held by acme\/pool$/);
    first.want(0);
    await first.end();
    expect(second.rooms).toHaveLength(1);
  });

  it("are taken by a roll-out from its own busy worker, and by no one else in between", async () => {
    withGpu();
    const own = pool().want(1);
    const [room] = own.rooms;
    own.sleeping.set(room as Room, Number.POSITIVE_INFINITY);
    const other = pool();
    other.urgent = true;
    own.isRollout = true;
    const entered = budget.enter(own);
    other.want(1);
    await later(300);
    expect(own.evicted).toEqual([room]);
    await own.gone();
    expect((await entered).gpus).toEqual([GPU]);
    expect(other.rooms).toHaveLength(0);
  });

  it("are taken by a roll-out from its own deployment before the minimum of another", async () => {
    const limits = { workers: 10, memoryBytes: 1e12 };
    const gpus = new GpuLedger({ list: [GPU, { ...GPU, index: 1, uuid: "GPU-1" }] });
    budget = new NodeBudget({ node: limits, organization: limits }, { gpus, gpuStayMs: 0 });
    budgets.push(budget);
    const other = pool().want(1).rest();
    await later(100);
    const own = pool().want(1).rest();
    own.isRollout = true;
    void budget.enter(own).then((room) => own.rooms.push(room));
    await later(5_000);
    expect([own.evicted.length, other.evicted.length]).toEqual([1, 0]);
  });

  it("are not surpassed by a roll-out, whatever room there is else", async () => {
    withGpu();
    pool().want(1);
    const rolling = pool();
    rolling.isRollout = true;
    expect(budget.tryEnter(rolling)).toBeUndefined();
    expect(budget.use).toMatchObject({ waiting: 1, gpus: [{ leftOut: undefined }] });
  });
});

describe("a node's budget", () => {
  it("gives room up to its number of workers, and then to one who waits when one ends", async () => {
    node(2);
    const first = new FakePool("acme").want(2);
    const second = new FakePool("acme").want(1);
    expect(second.rooms).toEqual([]);
    expect(budget.use).toMatchObject({ workers: 2, waiting: 1 });
    expect(budget.shortage(second)).toMatch(/runs the 2 workers that it may .*--max-workers\)$/);
    first.want(1);
    await first.end();
    expect(second.rooms).toHaveLength(1);
    expect(budget.use).toMatchObject({ workers: 2, waiting: 0 });
  });

  it("gives freed room to the organization that has the fewest workers", async () => {
    node(4);
    const busy = new FakePool("acme").want(3);
    const other = new FakePool("zeta").want(1);
    const acme = new FakePool("acme").want(1);
    const zeta = new FakePool("zeta").want(1);
    busy.want(1);
    await busy.end();
    expect([acme.rooms.length, zeta.rooms.length]).toEqual([0, 1]);
    await busy.end();
    expect(acme.rooms).toHaveLength(1);
    expect(other.rooms).toHaveLength(1);
  });

  it("shares freed room between organizations, however much one of them wants", async () => {
    node(4);
    const before = new FakePool("old").want(4);
    const greedy = new FakePool("acme").want(4);
    const modest = new FakePool("zeta").want(2);
    before.want(0);
    for (const room of [...before.rooms]) {
      room.leave();
    }
    await turn();
    expect([greedy.rooms.length, modest.rooms.length]).toEqual([2, 2]);
  });

  it("prefers a deployment that a caller waits for, and then the one that waits longest", async () => {
    node(1);
    const busy = new FakePool("acme").want(1);
    const [first, second, urgent] = ["acme", "acme", "acme"].map((name) => new FakePool(name));
    first?.want(1);
    second?.want(1);
    if (urgent) {
      urgent.urgent = true;
    }
    urgent?.want(1);
    busy.want(0);
    await busy.end();
    expect(urgent?.rooms).toHaveLength(1);
    urgent?.want(0);
    await urgent?.end();
    expect([first?.rooms.length, second?.rooms.length]).toEqual([1, 0]);
  });

  it("gives an organization no more than its part, and the rest to others", () => {
    node(4, { perOrganization: { workers: 3, memoryMib: 1_000_000 } });
    const acme = new FakePool("acme").want(4);
    expect(acme.rooms).toHaveLength(3);
    expect(budget.shortage(acme)).toMatch(/3 workers of organization acme .*-per-organization/);
    expect(new FakePool("zeta").want(1).rooms).toHaveLength(1);
  });

  it("asks the next one when the first does not take the room", async () => {
    node(1);
    const busy = new FakePool("acme").want(1);
    const first = new FakePool("acme").want(1);
    const second = new FakePool("acme").want(1);
    first.want(0);
    busy.want(0);
    await busy.end();
    expect(second.rooms).toHaveLength(1);
  });

  it("asks few of those who wait what they need, however many they are", async () => {
    node(1);
    const first = new FakePool("acme").want(1);
    const others = Array.from({ length: 300 }, (_, at) => new FakePool(`o${at % 30}`).want(1));
    await turn();
    const before = others.reduce((sum, { asked }) => sum + asked, 0);
    await first.end();
    for (const other of others) {
      expect(other.rooms.length).toBe(1);
      await other.want(0).end();
    }
    const asked = others.reduce((sum, each) => sum + each.asked, 0) - before;
    expect(asked).toBeLessThan(10 * others.length);
  });

  it("counts the memory that workers use, at least that of an empty one", async () => {
    node(100, { memoryMib: 300 });
    const acme = new FakePool("acme").want(4);
    expect(acme.rooms).toHaveLength(3);
    expect(budget.shortage(acme)).toMatch(/use the 300 MiB of memory that they may/);
    acme.rooms[0]?.measured(10 * MIB);
    expect(budget.use.memoryBytes).toBe(3 * 96 * MIB);
    acme.rooms[0]?.measured(200 * MIB);
    expect(budget.use.memoryBytes).toBe((2 * 96 + 200) * MIB);
    acme.want(1);
    await acme.end();
    await acme.end();
    expect(budget.use.memoryBytes).toBe(96 * MIB);
    acme.memory = { leastBytes: 96 * MIB, expectedBytes: 250 * MIB };
    expect(acme.want(2).rooms).toHaveLength(1);
  });

  it("lets a worker that expects more than all memory run alone", () => {
    node(100, { memoryMib: 300 });
    const large = new FakePool("acme");
    large.memory = { leastBytes: 96 * MIB, expectedBytes: 900 * MIB };
    expect(large.want(2).rooms).toHaveLength(1);
    expect(new FakePool("acme").want(1).rooms).toEqual([]);
  });

  it("lets somebody wait for room until a signal", async () => {
    node(1);
    const busy = new FakePool("acme").want(1);
    const abort = new AbortController();
    const waits = budget.enter(new FakePool("acme"), abort.signal);
    expect(budget.use.waiting).toBe(1);
    abort.abort(new Error("something else is wanted"));
    await expect(waits).rejects.toThrow("something else is wanted");
    expect(budget.use.waiting).toBe(0);
    const later = budget.enter(new FakePool("acme"));
    await busy.want(0).end();
    (await later).leave();
    expect(budget.use.workers).toBe(0);
  });

  it("lets one roll-out at a time go beyond it by one, for a deployment that has room", async () => {
    node(2);
    const [first, second] = [new FakePool("acme").want(1), new FakePool("zeta").want(1)];
    const rollouts = [first, second].map((tenant) => {
      const rollout = new FakePool(tenant.organization);
      return Object.assign(rollout, { tenant, isRollout: true }).want(1);
    });
    const stranger = Object.assign(new FakePool("acme"), { isRollout: true }).want(1);
    expect(rollouts.map(({ rooms }) => rooms.length)).toEqual([1, 0]);
    expect(budget.use).toMatchObject({ workers: 3, waiting: 2 });
    first.want(0);
    await first.end();
    expect(rollouts.map(({ rooms }) => rooms.length)).toEqual([1, 1]);
    expect(stranger.rooms).toEqual([]);
  });
});

describe("eviction", () => {
  it("ends the idle worker that was used least recently, and gives its room away when it has gone", async () => {
    node(2);
    const early = new FakePool("acme").want(1).rest();
    vi.advanceTimersByTime(10);
    const late = new FakePool("acme").want(1).rest();
    vi.advanceTimersByTime(5_000);
    const next = new FakePool("zeta").want(1);
    await turn();
    expect([early.evicted.length, late.evicted.length]).toEqual([1, 0]);
    expect(next.rooms).toEqual([]);
    await early.gone();
    expect(next.rooms).toHaveLength(1);
    expect(budget.use).toMatchObject({ workers: 2, waiting: 0, evictions: 1 });
  });

  it("ends one worker for one request, however long that takes to go", async () => {
    node(2);
    const pool = new FakePool("acme").want(2).rest();
    vi.advanceTimersByTime(5_000);
    new FakePool("zeta").want(1);
    await turn();
    pool.rooms[0]?.measured(100 * MIB);
    await turn();
    expect(pool.evicted).toHaveLength(1);
  });

  it("spares busy workers, and those of the minimum of a deployment", async () => {
    node(3);
    const busy = new FakePool("acme").want(1);
    const kept = new FakePool("acme").want(2).rest();
    kept.min = 1;
    vi.advanceTimersByTime(5_000);
    const next = new FakePool("zeta").want(2);
    await turn();
    await kept.gone();
    await turn();
    expect(next.rooms).toHaveLength(1);
    expect([busy.evicted, kept.evicted]).toEqual([[], []]);
    expect(budget.use).toMatchObject({ workers: 3, waiting: 1, evictions: 1 });
  });

  it("waits until a worker has been idle for a second", async () => {
    node(1);
    const pool = new FakePool("acme").want(1).rest();
    vi.advanceTimersByTime(400);
    new FakePool("zeta").want(1);
    await turn();
    vi.advanceTimersByTime(599);
    expect(pool.evicted).toEqual([]);
    vi.advanceTimersByTime(250);
    expect(pool.evicted).toHaveLength(1);
  });

  it("finds a worker that becomes idle while somebody waits", async () => {
    node(1);
    const pool = new FakePool("acme").want(1);
    new FakePool("zeta").want(1);
    await turn();
    vi.advanceTimersByTime(5_000);
    pool.rest();
    vi.advanceTimersByTime(1_250);
    expect(pool.evicted).toHaveLength(1);
  });

  it("ends workers of the same organization where that one has no room", async () => {
    node(4, { perOrganization: { workers: 2, memoryMib: 1_000_000 } });
    const other = new FakePool("zeta").want(1).rest();
    vi.advanceTimersByTime(10);
    const own = new FakePool("acme").want(2).rest();
    vi.advanceTimersByTime(5_000);
    new FakePool("acme").want(1);
    await turn();
    expect([own.evicted.length, other.evicted.length]).toEqual([1, 0]);
  });

  it("ends nobody where that would not make enough room", async () => {
    node(100, { memoryMib: 400 });
    const idle = new FakePool("acme").want(1).rest();
    const busy = new FakePool("acme").want(1);
    busy.rooms[0]?.measured(250 * MIB);
    vi.advanceTimersByTime(5_000);
    const large = new FakePool("zeta");
    large.memory = { leastBytes: 96 * MIB, expectedBytes: 200 * MIB };
    large.want(1);
    await turn();
    expect(idle.evicted).toEqual([]);
  });

  it("ends idle workers, and no others, where workers grew beyond the memory", async () => {
    node(100, { memoryMib: 400 });
    const idle = new FakePool("acme").want(2).rest();
    const busy = new FakePool("acme").want(1);
    vi.advanceTimersByTime(5_000);
    busy.rooms[0]?.measured(250 * MIB);
    await turn();
    expect(idle.evicted).toHaveLength(1);
    busy.rooms[0]?.measured(900 * MIB);
    await turn();
    expect(idle.evicted).toHaveLength(2);
    expect(busy.evicted).toEqual([]);
  });

  it("does not end a deployment's own worker to start another for it", async () => {
    node(1);
    const pool = new FakePool("acme").want(1).rest();
    vi.advanceTimersByTime(5_000);
    pool.want(2);
    await turn();
    expect(pool.evicted).toEqual([]);
  });
});
