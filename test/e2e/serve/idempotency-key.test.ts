/** The header `Idempotency-Key` below /api/v1, and what answers say of a repetition. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { refusal } from "./refusal.ts";
import { type Answer, type Served, type Shown, serve } from "./served.ts";

let served: Served;
beforeAll(async () => {
  served = await serve("calls");
});
afterAll(() => served.stop());

const key = (value: string) => ({ "idempotency-key": value });
const sum = (numbers: readonly number[], rest: object = {}) => ({
  endpoint: "sum",
  arguments: { numbers },
  ...rest,
});
const submit = (body: object, headers?: Record<string, string>): Promise<Answer> =>
  served.post("/api/v1/tasks", body, headers);
const idOf = ({ json }: Answer): string => (json as { task: Shown }).task.task_id;
const isReplayed = ({ headers }: Answer): boolean => headers.get("idempotent-replayed") === "true";

describe("the header Idempotency-Key over REST", () => {
  it("gives the task of the same key again, and says so, as the field and the data plane do", async () => {
    const first = await submit(sum([1]), key("rest 1"));
    expect(first).toMatchObject({ status: 200 });
    expect(isReplayed(first)).toBe(false);
    for (const again of [
      await submit(sum([1]), key("rest 1")),
      await submit(sum([1], { idempotency_key: "rest 1" })),
    ]) {
      expect(again).toMatchObject({ status: 200, json: { replayed: true } });
      expect(idOf(again)).toBe(idOf(first));
      expect(isReplayed(again)).toBe(true);
    }
    const onDataPlane = await served.post("/sum/submit", { numbers: [1] }, key("rest 1"));
    expect((onDataPlane.json as Shown).task_id).toBe(idOf(first));
    expect(refusal(await submit(sum([2]), key("rest 1")))).toMatchObject({
      status: 409,
      reason: "IDEMPOTENCY_KEY_REUSED",
    });
  });

  it.each(["idempotency_key", "idempotencyKey"])(
    "may say the same as the field %s, and nothing else",
    async (field) => {
      const own = `both ${field}`;
      const same = await submit(sum([1], { [field]: own }), key(own));
      expect(idOf(await submit(sum([1]), key(own)))).toBe(idOf(same));
      const refused = refusal(await submit(sum([1], { [field]: "another" }), key(own)));
      expect(refused).toMatchObject({ status: 400, reason: "REQUEST_INVALID" });
      expect(refused.fields).toEqual(["idempotency_key"]);
      expect(refused.message).toContain("contradicts the header Idempotency-Key");
    },
  );

  it("is the key where the field is empty, and does not hide what is wrong with the field", async () => {
    const first = await submit(sum([1], { idempotency_key: "" }), key("empty"));
    const again = await submit(sum([1], { idempotency_key: null }), key("empty"));
    expect(idOf(again)).toBe(idOf(first));
    const number = refusal(await submit(sum([1], { idempotency_key: 5 }), key("5")));
    expect(number).toMatchObject({ status: 400, fields: ["idempotency_key"] });
    expect(number.message).toContain("must be a string");
    const long = refusal(await submit(sum([1]), key("k".repeat(256))));
    expect(long).toMatchObject({ status: 400, fields: ["idempotency_key"] });
    const none = [await submit(sum([1]), key("")), await submit(sum([1]), key(""))];
    expect(new Set(none.map(idOf)).size).toBe(2);
  });

  it("begins a new task where the earlier one failed or was cancelled, unless it replays always", async () => {
    const failing = (rest: object = {}, headers = key("failed")) =>
      submit({ endpoint: "fail_later", arguments: { how: "plainly" }, ...rest }, headers);
    const first = await failing();
    await served.ended("fail_later", idOf(first));
    const always = await failing({ replay: "always" });
    expect([idOf(always), isReplayed(always)]).toEqual([idOf(first), true]);
    const second = await failing();
    expect([idOf(second) === idOf(first), isReplayed(second)]).toEqual([false, false]);
    expect(second.json).toMatchObject({
      task: { status: expect.stringMatching(/queued|running/) },
    });
    await served.ended("fail_later", idOf(second));
    const path = "/fail_later/submit";
    const onDataPlane = await served.post(
      `${path}?replay=always`,
      { how: "plainly" },
      key("failed"),
    );
    expect((onDataPlane.json as Shown).task_id).toBe(idOf(second));
    expect(refusal(await served.post(`${path}?replay=never`, { how: "x" })).fields).toEqual([
      "replay",
    ]);

    const delayed = () => submit(sum([3], { delay: "600s" }), key("cancelled"));
    const waiting = await delayed();
    expect(idOf(await delayed())).toBe(idOf(waiting));
    await served.fetch(`/sum/cancel?task_id=${idOf(waiting)}`, { method: "POST" });
    const anew = await delayed();
    expect([idOf(anew) === idOf(waiting), isReplayed(anew)]).toEqual([false, false]);
  });

  it("of a batch and of a retry begins a new task as that of a submit does", async () => {
    const call = {
      endpoint: "fail_later",
      arguments: { how: "plainly" },
      idempotency_key: "of all",
    };
    const batch = async (more: object = {}) => {
      const { json } = await served.post("/api/v1/tasks:batchSubmit", {
        tasks: [{ ...call, ...more }],
      });
      const [result] = (json as { results: object[] }).results;
      const { task, replayed = false } = result as { task: Shown; replayed?: boolean };
      await served.ended("fail_later", task.task_id);
      return { id: task.task_id, replayed };
    };
    const first = await batch();
    expect(await batch({ replay: "always" })).toEqual({ id: first.id, replayed: true });
    const second = await batch();
    expect(second.replayed).toBe(false);

    const retry = async (more: object = {}) => {
      const answer = await served.post(`/api/v1/tasks/${second.id}:retry`, more, key("of retry"));
      const { task_id } = answer.json as Shown;
      await served.ended("fail_later", task_id);
      return { id: task_id, replayed: isReplayed(answer) };
    };
    const retried = await retry();
    expect(await retry({ replay: "always" })).toEqual({ id: retried.id, replayed: true });
    const again = await retry();
    expect([again.id === retried.id, again.replayed]).toEqual([false, false]);
  });

  it("is that of a retry and of a call", async () => {
    const id = await served.submit("sum", { numbers: [1] });
    await served.result("sum", id);
    const retry = () => served.post(`/api/v1/tasks/${id}:retry`, {}, key("rest retry"));
    const [first, again] = [await retry(), await retry()];
    expect((again.json as Shown).task_id).toBe((first.json as Shown).task_id);
    expect([isReplayed(first), isReplayed(again)]).toEqual([false, true]);

    const call = (numbers: readonly number[]) =>
      served.post("/api/v1/endpoints/sum:call", { arguments: { numbers } }, key("rest call"));
    const [called, repeated] = [await call([1, 2]), await call([1, 2])];
    expect([called.json, repeated.json]).toEqual([{ value: 3 }, { value: 3 }]);
    expect([isReplayed(called), isReplayed(repeated)]).toEqual([false, true]);
    expect(refusal(await call([2]))).toMatchObject({ reason: "IDEMPOTENCY_KEY_REUSED" });
    const api = await served.post(
      "/api/v1/endpoints/repeat:call",
      { arguments: { text: "a" } },
      key("rest api"),
    );
    expect(refusal(api)).toMatchObject({ status: 400, fields: ["idempotency_key"] });
  });

  it("is refused for several calls, none of which would have it", async () => {
    const body = { tasks: [sum([1]), sum([2])] };
    const refused = refusal(await served.post("/api/v1/tasks:batchSubmit", body, key("batch")));
    expect(refused).toMatchObject({ status: 400, reason: "REQUEST_INVALID" });
    expect(refused.fields).toEqual(["tasks.idempotency_key"]);
    expect(refused.message).toContain("leave the header out");
    const accepted = await served.post("/api/v1/tasks:batchSubmit", body);
    expect(accepted).toMatchObject({ status: 200, json: { accepted: 2 } });
  });

  it("is nothing to methods without keys", async () => {
    const id = await served.submit("sum", { numbers: [1] });
    expect(await served.get(`/api/v1/tasks/${id}`, key("read"))).toMatchObject({ status: 200 });
  });
});

describe("a repetition on the deployment's own paths", () => {
  it("is told of also where the result is answered", async () => {
    const send = (path: string, headers: Record<string, string>) =>
      served.post(path, { numbers: [4] }, headers);
    const waiting = { ...key("wait"), prefer: "wait=20" };
    const submitted = [await send("/sum/submit", waiting), await send("/sum/submit", waiting)];
    const called = [await send("/sum", key("call")), await send("/sum", key("call"))];
    for (const answers of [submitted, called]) {
      expect(answers.map(({ status, json }) => [status, json])).toEqual([
        [200, 4],
        [200, 4],
      ]);
      expect(answers.map(isReplayed)).toEqual([false, true]);
    }
  });
});

describe("a repetition of a call that failed", () => {
  const args = { how: "throw" };

  it.each([
    ["a submit that waits", "/fail_later/submit?replay=always", args, { prefer: "wait=20" }],
    [
      "a call over REST",
      "/api/v1/endpoints/fail_later:call",
      { arguments: args, replay: "always" },
      {},
    ],
    [
      "a submit over REST that waits",
      "/api/v1/tasks",
      { endpoint: "fail_later", arguments: args, wait: "20s", replay: "always" },
      {},
    ],
  ])("that replays always is told of as such: %s", async (_name, path, body, headers) => {
    const send = () => served.post(path, body, { ...key(`failed ${path}`), ...headers });
    const answers = [await send(), await send()];
    expect(answers.map((answer) => refusal(answer).reason)).toEqual(["TASK_FAILED", "TASK_FAILED"]);
    expect(answers.map(isReplayed)).toEqual([false, true]);
  });

  it("runs again where the key does not replay always", async () => {
    const send = () => served.post("/fail_later", args, key("failed call"));
    const answers = [await send(), await send()];
    expect(answers.map((answer) => refusal(answer).reason)).toEqual(["TASK_FAILED", "TASK_FAILED"]);
    expect(answers.map(isReplayed)).toEqual([false, false]);
  });
});
