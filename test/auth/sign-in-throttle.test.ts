import { describe, expect, it } from "vitest";
import { type SignInAttempt, SignInThrottle } from "../../src/auth/sign-in-throttle.ts";
import { toProblem } from "../../src/errors.ts";

const ACCOUNT = "ada@example.com";
const MINUTE_MS = 60_000;

class World {
  nowMs = 0;
  readonly throttle: SignInThrottle;
  #networks = 0;

  constructor(capacity?: number) {
    this.throttle = new SignInThrottle({
      ...(capacity !== undefined && { capacity }),
      monotonicMs: () => this.nowMs,
    });
  }

  from(changes: Partial<SignInAttempt> = {}): SignInAttempt {
    this.#networks += 1;
    const address = `10.${this.#networks >> 8}.${this.#networks & 255}.1`;
    return { account: ACCOUNT, address, device: undefined, ...changes };
  }

  /** `failed`, or for how long one has to wait. */
  async fail(attempt: SignInAttempt = this.from()): Promise<"failed" | number> {
    try {
      await this.throttle.attempt(
        attempt,
        async () => false,
        (isRight) => !isRight,
      );
      return "failed";
    } catch (err) {
      const { reason, retryAfterMs } = toProblem(err);
      expect(reason).toBe("RATE_LIMITED");
      return retryAfterMs ?? 0;
    }
  }

  async exhaust(): Promise<void> {
    for (let count = 0; count < 30; count++) {
      expect(await this.fail()).toBe("failed");
    }
  }
}

const right = async () => true;
const busy = () => Promise.reject(new Error("the server is busy"));
const isWrong = (isRight: boolean) => !isRight;

describe("attempts from one place", () => {
  it("wait twice as long after each failure beyond the fifth, to a quarter of an hour", async () => {
    const world = new World();
    const attempt = world.from({ device: "laptop" });
    for (let count = 0; count < 5; count++) {
      expect(await world.fail(attempt)).toBe("failed");
    }
    const waits: number[] = [];
    for (let count = 0; count < 12; count++) {
      const waitMs = Number(await world.fail(attempt));
      waits.push(waitMs / 1_000);
      world.nowMs += waitMs;
      expect(await world.fail(attempt)).toBe("failed");
    }
    expect(waits).toEqual([2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]);
  });

  it("begin anew after a success, and after two hours without a failure", async () => {
    const world = new World();
    const attempt = world.from({ device: "laptop" });
    for (let count = 0; count < 4; count++) {
      await world.fail(attempt);
    }
    world.throttle.succeed(attempt);
    for (let count = 0; count < 5; count++) {
      expect(await world.fail(attempt)).toBe("failed");
    }
    expect(await world.fail(attempt)).toBe(2_000);
    world.nowMs += 121 * MINUTE_MS;
    expect(await world.fail(attempt)).toBe("failed");
    expect(await world.fail(attempt)).toBe("failed");
  });

  it("count together for the network of a stranger", async () => {
    const world = new World();
    for (let host = 1; host <= 5; host++) {
      expect(await world.fail(world.from({ address: `192.0.2.${host}` }))).toBe("failed");
    }
    expect(await world.fail(world.from({ address: "192.0.2.9" }))).toBe(2_000);
    for (let host = 1; host <= 5; host++) {
      expect(await world.fail(world.from({ address: `2001:db8:1:${host}::1` }))).toBe("failed");
    }
    expect(await world.fail(world.from({ address: "2001:db8:1:9::1" }))).toBe(2_000);
    expect(await world.fail(world.from({ address: "2001:db8:2::1" }))).toBe("failed");
  });
});

describe("attempts from one place at once", () => {
  it("are as many as may fail one after another, and leave the account's budget alone", async () => {
    const world = new World();
    const address = "192.0.2.7";
    const atOnce = (device?: string) =>
      Promise.all(Array.from({ length: 40 }, () => world.fail(world.from({ address, device }))));
    const outcomes = await atOnce();
    expect(outcomes.filter((outcome) => outcome === "failed")).toHaveLength(5);
    expect(outcomes[39]).toBe(2_000);
    for (let count = 0; count < 25; count++) {
      expect(await world.fail()).toBe("failed");
    }
    expect(await world.fail()).toBe(2 * MINUTE_MS);
    expect((await atOnce("stolen")).filter((outcome) => outcome === "failed")).toHaveLength(5);
    world.nowMs += 2_000;
    expect((await atOnce("stolen")).filter((outcome) => outcome === "failed")).toHaveLength(1);
  });

  it("leave nothing behind when they could not be made", async () => {
    const world = new World();
    const attempt = world.from({ device: "laptop" });
    for (let round = 0; round < 3; round++) {
      const broken = Array.from({ length: 5 }, () =>
        world.throttle.attempt(attempt, busy, isWrong),
      );
      const outcomes = await Promise.allSettled(broken);
      expect(outcomes.map(({ status }) => status)).toEqual(Array(5).fill("rejected"));
    }
    expect(world.throttle.size).toBe(0);
  });

  it("do not outlast a success among them", async () => {
    const world = new World();
    const attempt = world.from({ device: "laptop" });
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const late = world.throttle.attempt(attempt, () => promise, isWrong);
    for (let count = 0; count < 4; count++) {
      await world.fail(attempt);
    }
    world.throttle.succeed(attempt);
    resolve(false);
    await late;
    for (let count = 0; count < 4; count++) {
      expect(await world.fail(attempt)).toBe("failed");
    }
    expect(await world.fail(attempt)).toBe(2_000);
  });
});

describe("attempts of strangers at one account", () => {
  it("are thirty, and one more every two minutes, from wherever they come", async () => {
    const world = new World();
    await world.exhaust();
    expect(await world.fail()).toBe(2 * MINUTE_MS);
    world.nowMs += 2 * MINUTE_MS;
    expect(await world.fail()).toBe("failed");
    expect(await world.fail()).toBe(2 * MINUTE_MS);
    expect(await world.fail(world.from({ account: "bob@example.com" }))).toBe("failed");
  });

  it("are no more when they are made at once", async () => {
    const world = new World();
    const outcomes = await Promise.all(Array.from({ length: 100 }, () => world.fail()));
    expect(outcomes.filter((outcome) => outcome === "failed")).toHaveLength(30);
  });

  it("do not count when they succeed, or could not be made", async () => {
    const world = new World();
    for (let count = 0; count < 100; count++) {
      expect(await world.throttle.attempt(world.from(), right, isWrong)).toBe(true);
      const broken = world.throttle.attempt(
        world.from(),
        () => Promise.reject(new Error("the database is away")),
        isWrong,
      );
      await expect(broken).rejects.toThrow("away");
    }
    expect(await world.fail()).toBe("failed");
  });

  it("are remembered while attempts under other names come to nothing, or it is refused itself", async () => {
    const world = new World(100);
    await world.exhaust();
    for (let count = 0; count < 200; count++) {
      const other = world.from({ account: `other-${count}@example.com` });
      await expect(world.throttle.attempt(other, busy, isWrong)).rejects.toThrow("busy");
    }
    expect(await world.fail()).toBe(2 * MINUTE_MS);
    for (let count = 0; count < 200; count++) {
      await world.fail(world.from({ account: `other-${count}@example.com` }));
      expect(await world.fail()).toBe(2 * MINUTE_MS);
    }
  });

  it("stand in nobody's way who is known there", async () => {
    const world = new World();
    const home = world.from();
    world.throttle.succeed(home);
    await world.exhaust();
    expect(await world.throttle.attempt(home, right, isWrong)).toBe(true);
    const elsewhere = world.from({ device: "laptop" });
    expect(await world.throttle.attempt(elsewhere, right, isWrong)).toBe(true);
    expect(await world.fail()).toBe(2 * MINUTE_MS);
  });
});

it("the addresses at which a person is known are the last eight", () => {
  const world = new World();
  const homes = Array.from({ length: 9 }, () => world.from());
  for (const home of homes) {
    world.throttle.succeed(home);
  }
  expect(homes.map((home) => world.throttle.isKnown(home))).toEqual([
    false,
    ...Array(8).fill(true),
  ]);
});

it("what is remembered is bounded", async () => {
  const world = new World(100);
  for (let count = 0; count < 500; count++) {
    const attempt = world.from({ account: `person-${count}@example.com` });
    await world.fail(attempt);
    world.throttle.succeed(attempt);
  }
  expect(world.throttle.size).toBeLessThanOrEqual(100);
});
