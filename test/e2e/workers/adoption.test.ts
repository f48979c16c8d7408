/** What becomes of a task of a joined worker when its node ends: another goes on with it. */
import { afterEach, describe, expect, it } from "vitest";
import { TaskStatus, WorkerPlace } from "../../../src/client/index.ts";
import { Program } from "../cli/program.ts";
import { artifact, until, World } from "../hosting/world.ts";
import { newPostgres } from "../start/databases.ts";
import { type PlatformOptions, start } from "../start/platform.ts";
import { json, TestWorker } from "./test-worker.ts";

const resources: AsyncDisposable[] = [];

function use<One extends AsyncDisposable>(one: One): One {
  resources.push(one);
  return one;
}

afterEach(async () => {
  for (const one of resources.splice(0).reverse()) {
    await one[Symbol.asyncDispose]();
  }
});

/** A platform with a deployment whose workers join, and the token for them. */
async function startWorld(options: PlatformOptions = {}) {
  const world = use(await World.start(options));
  await world.deploy("echo", await artifact("echo"), { settings: { place: WorkerPlace.REMOTE } });
  const access = { access: ["worker"], deployments: ["echo"] };
  const { value } = await world.platform.createToken(world.cookie, access);
  return { world, token: value };
}

/** A worker that has joined, once the deployment is known to the node. */
async function join(url: string, token: string): Promise<TestWorker> {
  const worker = use(new TestWorker(url, token));
  await until(
    () => worker.register().catch((err: unknown) => err),
    (answer) => answer === worker,
  );
  return worker.open();
}

async function submit({ client }: World): Promise<string> {
  const input = { case: "arguments", value: { text: "a" } as never } as const;
  const submitted = await client.tasks.submitTask({
    deployment: "acme/echo",
    endpoint: "work",
    input,
  });
  return submitted.task?.taskId ?? "";
}

/** Registers at another node with what the worker has. */
async function move(from: TestWorker, url: string, token: string, taskId: string) {
  const held = [{ id: 1n, taskId, attempt: 1, endpoint: "work" }];
  const moved = use(new TestWorker(url, token));
  const request = { resumeSession: from.session, held };
  await until(
    () => moved.register(request).catch((err: unknown) => err),
    (answer) => answer === moved,
  );
  return moved;
}

describe("a task that runs at a worker", () => {
  it("goes on when its node stops and starts again, as attempt 1", async () => {
    const { world, token } = await startWorld();
    const worker = await join(world.platform.url, token);
    const taskId = await submit(world);
    const call = await worker.take();
    await world.platform[Symbol.asyncDispose]();
    expect(String(await worker.ended)).toContain("the node ends");

    const again = use(await start(world.folder));
    const moved = await move(worker, again.url, token, taskId);
    expect(moved.registered?.keep).toEqual([call.id]);
    expect(moved.session).not.toBe(worker.session);
    await moved.open();
    moved.results(json(call.id, "done"));
    expect(await moved.acknowledged(call.id)).toBe("recorded");
    const found = await again.call(
      `/api/v1/tasks/${taskId}?deployment=acme/echo`,
      undefined,
      world.cookie,
    );
    expect(found.json).toMatchObject({ status: "success", attempt: 1 });
    // The session before is over.
    await expect(moved.register({ resumeSession: worker.session })).rejects.toThrow("has ended");
  });

  it("is adopted with its own token and for its own deployment alone, also when that token is gone", async () => {
    const { world, token } = await startWorld();
    await world.deploy("other", await artifact("echo"), {
      settings: { place: WorkerPlace.REMOTE },
    });
    const worker = await join(world.platform.url, token);
    const taskId = await submit(world);
    const call = await worker.take();
    const strangers = await Promise.all(
      [{ deployments: ["echo"] }, { all_deployments: true }].map((fields) =>
        world.platform.createToken(world.cookie, { access: ["worker"], ...fields }),
      ),
    );
    await world.platform[Symbol.asyncDispose]();

    const again = use(await start(world.folder));
    const held = [{ id: call.id, taskId, attempt: 1, endpoint: "work" }];
    const request = { resumeSession: worker.session, held };
    // Known to the node, and so asked of the database.
    const sibling = await join(again.url, strangers[0]?.value ?? "");
    sibling.send({ case: "draining", value: { reason: "the test has begun" } });
    for (const [index, deployment] of [
      [0, "echo"],
      [1, "echo"],
      [1, "other"],
    ] as const) {
      const stranger = use(new TestWorker(again.url, strangers[index]?.value ?? ""));
      for (const restarted of [false, true]) {
        const answer = await stranger
          .register({ ...request, deployment, restarted })
          .catch((err: unknown) => String(err));
        // Who says that its process has died begins anew, and has taken nothing.
        expect(restarted || String(answer).includes("has ended"), String(answer)).toBe(true);
      }
    }
    const moved = await move(worker, again.url, token, taskId);
    expect(moved.registered?.keep).toEqual([call.id]);
  });

  it("goes on when its node is killed and starts again", async () => {
    const { world, token } = await startWorld();
    await world.platform[Symbol.asyncDispose]();
    const program = use(
      new Program(["start", "--port", "0", "--data", world.folder.data], {
        cwd: world.folder.path,
        env: {},
      }),
    );
    const [, port = ""] = await program.says("stdout", / runs on http:\/\/localhost:(\d+)\n/);
    const url = `http://127.0.0.1:${port}`;
    const worker = await join(url, token);
    const submitted = await fetch(`${url}/work/submit`, {
      method: "POST",
      headers: { "content-type": "application/json", "tessera-deployment": "acme/echo" },
      body: '{"text":"a"}',
    });
    const { task_id: taskId } = (await submitted.json()) as { task_id: string };
    const call = await worker.take();
    await program.stop("SIGKILL");
    await worker.ended;

    const again = use(await start(world.folder));
    const moved = await move(worker, again.url, token, taskId);
    expect(moved.registered?.keep).toEqual([call.id]);
    await moved.open();
    moved.results(json(call.id, "done"));
    expect(await moved.acknowledged(call.id)).toBe("recorded");
  });

  it("moves with its worker to another node, and the one before changes nothing of it", async () => {
    const database = await newPostgres();
    const { world, token } = await startWorld({ database });
    const other = use(await start(world.folder, { database }));
    const worker = await join(world.platform.url, token);
    const taskId = await submit(world);
    const call = await worker.take();
    const moved = await move(worker, other.url, token, taskId);
    expect(moved.registered?.keep).toEqual([call.id]);
    await moved.open();
    // The first node still has its stream.
    worker.results(json(call.id, "from before"));
    expect(await worker.acknowledged(call.id)).toBe("stale");
    moved.results(json(call.id, "done"));
    expect(await moved.acknowledged(call.id)).toBe("recorded");
    const task = await world.client.tasks.getTask({ deployment: "acme/echo", taskId });
    expect(task).toMatchObject({ status: TaskStatus.SUCCESS, attempt: 1 });
  });

  it("runs again when its worker came back without it", async () => {
    const { world, token } = await startWorld();
    const worker = await join(world.platform.url, token);
    const taskId = await submit(world);
    await worker.take();
    await world.platform[Symbol.asyncDispose]();
    const again = use(await start(world.folder));
    const moved = await move(worker, again.url, token, "another");
    expect(moved.registered?.keep).toEqual([]);
    await moved.open();
    expect(await moved.take()).toMatchObject({ taskId, attempt: 2 });
  });
});
