import { expect, it } from "vitest";
import { follow, type TaskPage } from "../../../../src/server/rpc/task/watch.ts";

const EMPTY: TaskPage = { tasks: new Map(), nextPageToken: "" };

async function said(read: () => Promise<TaskPage>, forMs: number, keepAliveMs: number) {
  const messages: object[] = [];
  const { signal } = new AbortController();
  for await (const message of follow({ get: read }, signal, { forMs, keepAliveMs })) {
    messages.push(message);
  }
  return messages;
}

it("a page without a change is told once", async () => {
  const messages = await said(async () => EMPTY, 1_100, 60_000);
  expect(messages).toEqual([{ tasks: [], removedTaskIds: [], nextPageToken: "" }]);
});

it("a page without a change has a message that says nothing, when none came for a while", async () => {
  const messages = await said(async () => EMPTY, 1_100, 500);
  expect(messages).toEqual([
    { tasks: [], removedTaskIds: [], nextPageToken: "" },
    { nextPageToken: "" },
  ]);
});

it("a page that cannot be read ends the stream with the error", async () => {
  const failing = () => Promise.reject(new Error("the database is away"));
  await expect(said(failing, 1_000, 1_000)).rejects.toThrow("the database is away");
});
