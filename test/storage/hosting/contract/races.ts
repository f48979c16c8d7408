/** Calls at the same moment. In Postgres they run on connections of their own. */
import { expect } from "vitest";
import type { It } from "../contract.ts";
import { artifactOf, HOUR_MS, type HostingPlatform, sha256 } from "../fixtures.ts";

function times<Result>(count: number, call: (index: number) => Result): Result[] {
  return Array.from({ length: count }, (_, index) => call(index));
}

/** Opens the connections on which the calls will meet. */
async function warmUp({ hosting, nowMs }: HostingPlatform): Promise<void> {
  await Promise.all(times(6, () => hosting.listNodes({ nowMs })));
}

export function racesContract(it: It): void {
  it("gives revisions made at once different numbers", async (platform) => {
    await warmUp(platform);
    await platform.deploy(["one"]);
    await platform.upload("two");
    const made = await Promise.all(
      times(6, (index) =>
        platform.hosting.createRevision(
          platform.newRevision(artifactOf(index % 2 ? "one" : "two")),
        ),
      ),
    );
    const numbers = made.map((each) => (each.outcome === "created" ? each.revision : each.outcome));
    expect(numbers.sort()).toEqual([2, 3, 4, 5, 6, 7]);
    const hosted = await platform.hosting.getHosted({ deploymentId: "summarizer-id" });
    expect(hosted).toMatchObject({ targetRevision: 7, version: 7 });
  });

  it("makes a new deployment once, and tells the others whose it is", async (platform) => {
    await warmUp(platform);
    await platform.upload("one");
    const made = await Promise.all(
      times(5, (index) =>
        platform.hosting.createRevision(
          platform.newRevision(artifactOf("one"), { deploymentId: `id-${index}` }),
        ),
      ),
    );
    const [created] = made.flatMap((each) => (each.outcome === "created" ? [each.deployment] : []));
    const deploymentId = created?.deploymentId;
    expect(made.filter(({ outcome }) => outcome === "created")).toHaveLength(1);
    expect(made.filter(({ outcome }) => outcome === "conflict")).toEqual(
      times(4, () => ({ outcome: "conflict", deploymentId })),
    );
  });

  it("either sweeps a file or uses it, never both", async (platform) => {
    const { hosting, organizationId } = platform;
    await warmUp(platform);
    const outcomes = new Set<string>();
    const rounds = times(24, (index) => ({
      round: `round ${index}`,
      createsFirst: index % 2 === 0,
      // Who wins a race is chance; the last rounds show both ends of it.
      atOnce: index < 20,
    }));
    for (const { round, createsFirst: first, atOnce } of rounds) {
      await platform.upload(round);
      platform.nowMs += HOUR_MS;
      const { nowMs } = platform;
      const artifact = artifactOf(round);
      const again = { againMs: nowMs + 60_000, limit: 10 };
      const revision = platform.newRevision(artifact, { keptRevisions: 100 });
      const create = () => hosting.createRevision(revision);
      const sweep = () => hosting.takeUnusedFiles({ nowMs, ...again });
      const [begin, follow] = first ? [create, sweep] : [sweep, create];
      const [one, other] = atOnce
        ? await Promise.all([begin(), follow()])
        : [await begin(), await follow()];
      const made = (first ? one : other) as Awaited<ReturnType<typeof create>>;
      const taken = (first ? other : one) as Awaited<ReturnType<typeof sweep>>;
      outcomes.add(made.outcome);
      if (taken !== undefined) {
        await hosting.forgetFiles(taken);
      }
      const { digest } = artifact;
      const files = await hosting.listArtifactFiles({ organizationId, digest });
      if (made.outcome === "created") {
        expect(taken?.blobIds ?? []).toEqual([]);
        expect(files).toHaveLength(1);
      } else {
        expect(made).toEqual({ outcome: "files_missing", files: [sha256(round)] });
        expect(taken?.blobIds).toHaveLength(1);
        expect(files).toEqual([]);
      }
    }
    expect([...outcomes].sort()).toEqual(["created", "files_missing"]);
  });

  it("finishes a file once, whoever uploads it", async (platform) => {
    const { hosting, organizationId, keptUntilMs } = platform;
    await warmUp(platform);
    const blobIds = times(5, (index) => `blob-${index}`);
    await Promise.all(blobIds.map((blobId) => platform.register("one", blobId)));
    const finished = await Promise.all(
      blobIds.map((blobId) => hosting.finishFile({ organizationId, blobId, keptUntilMs })),
    );
    expect(finished).toEqual(times(5, () => ({ outcome: "finished" })));
    platform.nowMs += HOUR_MS - 1;
    await platform.deploy(["one"]);
    platform.nowMs += 1;
    expect(await platform.sweep()).toHaveLength(4);
  });

  it("numbers the lines of all nodes without gaps", async (platform) => {
    const { hosting, organizationId } = platform;
    await warmUp(platform);
    await platform.deploy(["one"]);
    const key = { organizationId, deploymentId: "summarizer-id" };
    const line = {
      timeMs: 1,
      worker: "",
      revision: 1,
      taskId: "",
      stream: "stdout",
      level: "info",
      text: "x",
    } as const;
    const read: number[] = [];
    const follow = async () => {
      const { lines } = await hosting.readLogs({
        ...key,
        afterSequence: read.at(-1) ?? 0,
        limit: 100,
      });
      read.push(...lines.map(({ sequence }) => sequence));
    };
    const appending = Promise.all(
      times(20, (index) =>
        hosting.appendLogs({ ...key, nodeId: `node-${index % 3}`, lines: [line, line, line] }),
      ),
    );
    await follow();
    await follow();
    await appending;
    await follow();
    expect(read).toEqual(times(60, (index) => index + 1));
  });

  it("does not wait in a circle when everything happens at once", async (platform) => {
    const { hosting, organizationId, storage } = platform;
    await warmUp(platform);
    await platform.deploy(["one", "two"]);
    const key = { organizationId, deploymentId: "summarizer-id" };
    const report = { ...key, status: "ready", reason: "", revision: 1, workers: 1 } as const;
    const other = { ...report, deploymentId: "other-id" };
    await platform.deploy(["one"], { name: "other", deploymentId: "other-id" });
    const line = {
      timeMs: 1,
      worker: "",
      revision: 1,
      taskId: "",
      stream: "stdout",
      level: "info",
      text: "x",
    } as const;
    const { nowMs, keptUntilMs } = platform;
    const later = nowMs + 3 * HOUR_MS;
    const calls: Promise<unknown>[] = times(8, (index) => {
      const reports = [report, other].map((each) => ({
        ...each,
        targetRevision: index,
        version: index,
      }));
      return [
        platform.upload(`file ${index}`),
        platform.missing("one", "two", `file ${index}`),
        hosting.createRevision(platform.newRevision(artifactOf("one"), { keptRevisions: 1 })),
        hosting.reportDeployments({
          nowMs: 0,
          nodeId: `node-${index}`,
          reports: index % 2 ? reports : reports.reverse(),
        }),
        hosting.appendLogs({ ...key, nodeId: "node", lines: [line] }),
        hosting.takeUnusedFiles({ nowMs: later, againMs: keptUntilMs, limit: 3 }),
        hosting.pruneHosting({ nowMs: later, limit: 3 }),
        storage.pruneDeleted({ nowMs, limit: 3 }),
      ];
    }).flat();
    calls.splice(20, 0, platform.remove());
    const settled = await Promise.allSettled(calls);
    expect(settled.filter(({ status }) => status === "rejected")).toEqual([]);
  });
}
