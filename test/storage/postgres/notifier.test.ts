import { describe, expect, test } from "vitest";
import type { Hint } from "../../../src/storage/notifier.ts";
import { PostgresNotifier } from "../../../src/storage/postgres/notifier.ts";
import { ask, databaseUrl, newSchema, notify } from "./databases.ts";

/** A notifier with what it heard; it listens when `heard` has its first hint or `ready` resolves. */
class Node implements AsyncDisposable {
  readonly heard: Hint[] = [];
  readonly notifier: PostgresNotifier;

  constructor(url: string, schema: string) {
    this.notifier = new PostgresNotifier(url, { schema, timeoutMs: 2_000, notify });
    this.notifier.subscribe((hint) => void this.heard.push(hint));
    this.notifier.start();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.notifier[Symbol.asyncDispose]();
  }
}

/** Resolves when all of them hear what is sent. */
async function listening(...nodes: readonly Node[]): Promise<void> {
  await expect.poll(() => nodes.every(({ notifier }) => notifier.isUp)).toBe(true);
}

/** The connections that listen. */
async function listeners(): Promise<number[]> {
  const rows = await ask(
    await databaseUrl(),
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'tessera' AND datname = current_database()",
  );
  return rows.map(({ pid }) => Number(pid));
}

const QUEUED: Hint = { kind: "queued", deploymentId: "d", endpoint: "e" };

async function withTwo(run: (a: Node, b: Node, channel: string) => Promise<void>): Promise<void> {
  const [url, channel] = [await databaseUrl(), newSchema()];
  await using a = new Node(url, channel);
  await using b = new Node(url, channel);
  await listening(a, b);
  await run(a, b, channel);
}

const heard = (node: Node, hints: readonly Hint[]) => expect.poll(() => node.heard).toEqual(hints);

describe("hints between nodes", () => {
  test("reach the others, not their sender, each once per batch", () =>
    withTwo(async (...[a, b]) => {
      const hints: Hint[] = [
        QUEUED,
        { kind: "changed", taskId: "t" },
        { kind: "abort", taskId: "t" },
        { kind: "accounts" },
      ];
      for (const hint of [...hints, ...hints]) {
        a.notifier.publish(hint);
      }
      await heard(b, hints);
      b.notifier.publish(QUEUED);
      await heard(a, [QUEUED]);
      expect(b.heard).toEqual(hints);
    }));

  test("become one general hint when there are too many to tell", () =>
    withTwo(async (...[a, b]) => {
      for (let index = 0; index < 5_000; index++) {
        a.notifier.publish({ kind: "changed", taskId: `task-${index}` });
      }
      await heard(b, [{ kind: "look" }]);
      a.notifier.publish({ kind: "changed", taskId: "x".repeat(9_000) });
      await heard(b, [{ kind: "look" }, { kind: "look" }]);
      a.notifier.publish(QUEUED);
      await heard(b, [{ kind: "look" }, { kind: "look" }, QUEUED]);
    }));

  test("are taken as a general hint when they are not understood", () =>
    withTwo(async (...[a, b, channel]) => {
      await ask(await databaseUrl(), "SELECT pg_notify($1, 'nonsense')", channel);
      await heard(a, [{ kind: "look" }]);
      await heard(b, [{ kind: "look" }]);
    }));

  test("reach a node again after its connection was killed, which hears that it missed some", () =>
    withTwo(async (...[a, b]) => {
      for (const pid of await listeners()) {
        await ask(await databaseUrl(), "SELECT pg_terminate_backend($1)", pid);
      }
      await heard(a, [{ kind: "look" }]);
      await heard(b, [{ kind: "look" }]);
      a.notifier.publish(QUEUED);
      await heard(b, [{ kind: "look" }, QUEUED]);
    }));

  test("published before there is a connection are sent when there is one", async () => {
    const [url, channel] = [await databaseUrl(), newSchema()];
    await using b = new Node(url, channel);
    await listening(b);
    await using late = new PostgresNotifier(url, { schema: channel, notify });
    late.publish(QUEUED);
    late.start();
    await heard(b, [QUEUED]);
  });

  test("do not keep a node from ending while the database is away", async () => {
    const notifier = new PostgresNotifier("postgres://tessera@127.0.0.1:1/db", { notify });
    notifier.start();
    notifier.publish(QUEUED);
    await notifier[Symbol.asyncDispose]();
    await notifier[Symbol.asyncDispose]();
  });
});
