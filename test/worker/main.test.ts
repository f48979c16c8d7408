import { describe, expect, it } from "vitest";
import { WorkerProcess } from "./process.ts";

describe("a worker ends", () => {
  it("with code 0 when told to stop, after the calls under way", async () => {
    const { worker } = await WorkerProcess.ready("zod-functions.ts");
    await using _ = worker;
    const id = worker.start("slow", { ms: 100 });
    worker.send({ type: "stop" });
    expect(await worker.outcome(id)).toMatchObject({ result: '"finished"' });
    expect(await worker.exited).toBe(0);
  });

  it("at once when the node is gone", async () => {
    const { worker } = await WorkerProcess.ready("zod-functions.ts");
    await using _ = worker;
    worker.start("slow", { ms: 60_000 });
    worker.channel.destroy();
    expect(await worker.exited).toBe(1);
  });

  it("with the code of a process.exit in user code, after sending what was finished", async () => {
    const { worker } = await WorkerProcess.ready("zod-functions.ts");
    await using _ = worker;
    const finished = worker.start("greet", { name: "first" });
    worker.start("exit", {});
    expect(await worker.exited).toBe(7);
    expect(await worker.outcome(finished)).toMatchObject({ result: '"hello first"' });
  });

  it("with code 1 and the error on stderr after an unhandled rejection", async () => {
    const { worker } = await WorkerProcess.ready("zod-functions.ts");
    await using _ = worker;
    worker.start("reject_unhandled", {});
    expect(await worker.exited).toBe(1);
    expect(worker.stderr).toContain("nobody waits for this");
  });
});
